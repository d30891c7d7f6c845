// One tools/call, sent as a client of the newest protocol revision sends it.

const PREFIX = "io.modelcontextprotocol/";
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;
const encoder = new TextEncoder();

let sent = 0;

/** The JSON-RPC message of a call. */
export function message(revision, tool, args) {
  return {
    jsonrpc: "2.0",
    id: (sent += 1),
    method: "tools/call",
    params: {
      name: tool,
      arguments: args,
      _meta: {
        [`${PREFIX}protocolVersion`]: revision,
        [`${PREFIX}clientCapabilities`]: {},
      },
    },
  };
}

function headers(revision, tool) {
  return {
    "Content-Type": "application/json",
    "MCP-Protocol-Version": revision,
    "Mcp-Method": "tools/call",
    "Mcp-Name": tool,
  };
}

/** The token in what was pasted: alone, or with the word Bearer before it. */
export function bearer(pasted) {
  return pasted.trim().replace(/^(authorization:\s*)?bearer\s+/i, "");
}

export function mayBeToken(token) {
  return TOKEN.test(token);
}

/**
 * Makes a call and tells what came back: {status, milliseconds, result | refusal, raw}.
 * A refusal is what was said where there is no result: a JSON-RPC error, a proxy's page, silence.
 */
export async function send({ endpoint, revision, token, signal }, tool, args) {
  const body = JSON.stringify(message(revision, tool, args));
  const carried = headers(revision, tool);
  if (token) carried.Authorization = `Bearer ${token}`;
  const begun = performance.now();
  let response;
  let raw;
  try {
    response = await fetch(endpoint, {
      method: "POST",
      headers: carried,
      body,
      signal,
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
    });
    raw = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const refusal = { message: `No response: ${error.message}.`, hint: "Is the server still running?" };
    return { status: 0, milliseconds: performance.now() - begun, refusal, raw: "" };
  }
  const milliseconds = performance.now() - begun;
  return { status: response.status, milliseconds, raw, ...understood(raw, response.status) };
}

function understood(raw, status) {
  let reply;
  try {
    reply = JSON.parse(raw);
  } catch {
    const hint = "A proxy may have answered instead of the server.";
    return { refusal: { message: `The answer with status ${status} is not JSON.`, hint } };
  }
  if (reply?.result) return { result: reply.result };
  const error = reply?.error ?? {};
  const { message: said, hint, code } = error.data ?? {};
  const number = error.code === undefined ? "" : ` (JSON-RPC ${error.code})`;
  return {
    refusal: { message: said ?? error.message ?? "The answer has no result.", hint, code: `${code ?? ""}${number}`.trim() },
  };
}

/** Bytes and estimated tokens of a text: a quarter of its ASCII characters, and one for each other. */
export function cost(text) {
  let ascii = 0;
  let others = 0;
  for (const character of text) {
    if (character <= "\u007f") ascii += 1;
    else others += 1;
  }
  return { bytes: encoder.encode(text).length, tokens: Math.ceil(ascii / 4) + others };
}
