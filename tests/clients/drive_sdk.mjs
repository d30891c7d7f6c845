// Drives the official TypeScript SDKs, by task.package. Task on stdin, one JSON line per step.
import { readFileSync } from "node:fs";

const task = JSON.parse(readFileSync(0, "utf8"));
const told = (step) => console.log(JSON.stringify(step));

// The 1.x line keeps each transport apart; the 2.x line only stdio, and it knows both eras.
const modules =
  task.package === "@modelcontextprotocol/sdk"
    ? ["/client/index.js", "/client/streamableHttp.js", "/client/stdio.js"]
    : ["", "/stdio"];
const { Client, StdioClientTransport, StreamableHTTPClientTransport } = Object.assign(
  {},
  ...(await Promise.all(modules.map((path) => import(task.package + path)))),
);

const options = task.mode ? { versionNegotiation: { mode: task.mode } } : {};
const client = new Client({ name: "clients-matrix", version: "1" }, options);
const [command, ...args] = task.command ?? [];
const transport = command
  ? new StdioClientTransport({ command, args })
  : new StreamableHTTPClientTransport(new URL(task.url), { requestInit: { headers: task.headers } });
await client.connect(transport);

const { tools } = await client.listTools();
const version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? "legacy";
told({ tools: tools.map((tool) => tool.name), version });

for (const call of task.calls) {
  const result = await client.callTool({ name: call.tool, arguments: call.arguments ?? {} });
  const text = result.content.map((block) => block.text ?? "").join("\n");
  told({ text, failed: result.isError === true });
}
await client.close();
