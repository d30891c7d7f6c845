// Drives the official TypeScript SDKs, by task.package. Task and calls on stdin, one JSON line per step.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const task = JSON.parse((await lines.next()).value);
const told = (step) => console.log(JSON.stringify(step));

// The 1.x line keeps each transport apart; the 2.x line only stdio, and it knows both eras.
const old = task.package === "@modelcontextprotocol/sdk";
const modules = old
  ? ["/client/index.js", "/client/streamableHttp.js", "/client/stdio.js"]
  : ["", "/stdio"];
const { Client, StdioClientTransport, StreamableHTTPClientTransport } = Object.assign(
  {},
  ...(await Promise.all(modules.map((path) => import(task.package + path)))),
);

// What an application brings to sign in: memory, a browser, and a page to come back to.
const kept = {};
let cameBack;
const provider = (redirectUrl) => ({
  redirectUrl,
  clientMetadata: {
    client_name: "TypeScript SDK",
    redirect_uris: [redirectUrl],
    token_endpoint_auth_method: "none",
  },
  state: () => "1234567890",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  redirectToAuthorization: (url) => void spawn("xdg-open", [url.href], { stdio: "ignore" }),
});
const callback = createServer((request, response) => {
  response.end("You can close this page.");
  const { pathname, searchParams } = new URL(request.url, "http://127.0.0.1");
  if (pathname === "/callback") cameBack(searchParams);
});
if (task.sign_in) await new Promise((listening) => callback.listen(0, "127.0.0.1", listening));
callback.unref();
const authProvider = task.sign_in
  ? provider(`http://127.0.0.1:${callback.address().port}/callback`)
  : undefined;

const options = task.mode ? { versionNegotiation: { mode: task.mode } } : {};
const [command, ...args] = task.command ?? [];
const requestInit = { headers: task.headers };
const transport = () =>
  command
    ? new StdioClientTransport({ command, args })
    : new StreamableHTTPClientTransport(new URL(task.url), { requestInit, authProvider });

async function connected() {
  const client = new Client({ name: "clients-matrix", version: "1" }, options);
  const way = transport();
  await client.connect(way);
  return [client, way];
}

async function signedIn() {
  const way = transport();
  const back = new Promise((resolve) => (cameBack = resolve));
  const failure = await new Client({ name: "clients-matrix", version: "1" }, options)
    .connect(way)
    .catch((error) => error);
  if (!kept.verifier) throw failure;
  const query = await back;
  await way.finishAuth(old ? query.get("code") : query);
  return connected();
}

const [client, way] = await (task.sign_in ? signedIn() : connected());
const { tools } = await client.listTools();
const version = client.getNegotiatedProtocolVersion?.() ?? way.protocolVersion ?? "legacy";
told({ tools: tools.map((tool) => tool.name), version });

for await (const line of lines) {
  const call = JSON.parse(line);
  const result = await client.callTool({ name: call.tool, arguments: call.arguments ?? {} });
  const text = result.content.map((block) => block.text ?? "").join("\n");
  told({ text, failed: result.isError === true });
}
await client.close();
