// Drives the official TypeScript SDKs, by task.package. Task on stdin, one JSON line per step.
import { readFileSync } from "node:fs";

const task = JSON.parse(readFileSync(0, "utf8"));
const told = (step) => console.log(JSON.stringify(step));

// The 1.x line keeps its transport apart; the 2.x line exports both and knows both eras.
const modules =
  task.package === "@modelcontextprotocol/sdk"
    ? ["client/index.js", "client/streamableHttp.js"].map((path) => `${task.package}/${path}`)
    : [task.package];
const { Client, StreamableHTTPClientTransport } = Object.assign(
  {},
  ...(await Promise.all(modules.map((name) => import(name)))),
);

const options = task.mode ? { versionNegotiation: { mode: task.mode } } : {};
const client = new Client({ name: "clients-matrix", version: "1" }, options);
const transport = new StreamableHTTPClientTransport(new URL(task.url), {
  requestInit: { headers: task.headers },
});
await client.connect(transport);

const { tools } = await client.listTools();
const version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion;
told({ tools: tools.map((tool) => tool.name), version });

for (const call of task.calls) {
  const result = await client.callTool({ name: call.tool, arguments: call.arguments ?? {} });
  const text = result.content.map((block) => block.text ?? "").join("\n");
  told({ text, failed: result.isError === true });
}
await client.close();
