// @modelcontextprotocol/sdk 1.x: stateless, JSON answers, a server and a transport per request.
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { register, serve } from "./search.mjs";

serve(
  createServer(async (request, response) => {
    const server = register(new McpServer({ name: "first", version: "1" }));
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: undefined,
      enableJsonResponse: true,
    });
    response.on("close", () => {
      transport.close();
      server.close();
    });
    await server.connect(transport);
    await transport.handleRequest(request, response);
  }),
);
