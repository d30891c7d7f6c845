// Drives the inspector's command line, one run per step. Task and calls on stdin, a JSON line per step.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const task = JSON.parse((await lines.next()).value);
const told = (step) => console.log(JSON.stringify(step));

const inspector = fileURLToPath(new URL("node_modules/.bin/mcp-inspector", import.meta.url));
const headers = Object.entries(task.headers ?? {}).flatMap(([name, value]) => [
  "--header",
  `${name}: ${value}`,
]);
const common = ["--cli", "--protocol-era", task.mode, "-q", "--format", "json"];
const way = task.command
  ? ["--transport", "stdio", "--", ...task.command]
  : ["--transport", "http", ...headers, "--", task.url];

// The inspector keeps what it saw in the home folder; this run leaves nothing in the user's.
const home = mkdtempSync(join(tmpdir(), "inspector-"));
const signIn = task.sign_in
  ? { MCP_AUTO_OPEN_ENABLED: "true", MCP_INSPECTOR_SECRET_STORE: "file" }
  : {};
const env = { ...process.env, ...signIn, HOME: home };
process.on("exit", () => rmSync(home, { recursive: true, force: true }));

function inspect(...step) {
  const command = [inspector, ...common, ...step, ...way];
  // A tool that fails is an answer too, though the inspector then exits with another code.
  const done = spawnSync(process.execPath, command, { encoding: "utf8", env });
  if (!done.stdout.trim()) throw new Error(done.stderr.trim().replaceAll("\n", " "));
  const answer = JSON.parse(done.stdout);
  return answer.result ?? answer;
}

told({ tools: inspect("--method", "tools/list").tools.map((tool) => tool.name), version: task.mode });

for await (const line of lines) {
  const call = JSON.parse(line);
  const args = JSON.stringify(call.arguments ?? {});
  const named = ["--method", "tools/call", "--tool-name", call.tool, "--tool-args-json", args];
  const result = inspect(...named);
  const text = result.content.map((block) => block.text ?? "").join("\n");
  told({ text, failed: result.isError === true });
}
