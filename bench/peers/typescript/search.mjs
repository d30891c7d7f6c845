// The search of the peers: the same statement over the same file, its connection kept open.
import Database from "better-sqlite3";
import { z } from "zod";

const db = new Database(process.env.BENCH_PLAIN_DB, { readonly: true });
db.pragma(`mmap_size = ${process.env.BENCH_MMAP_BYTES}`);
const statement = db.prepare(process.env.BENCH_SEARCH).raw();

const dropped = new Set(process.env.BENCH_STOP_WORDS.split(" "));

const description = "Search records.";
const inputSchema = z.object({ query: z.string(), limit: z.number().int().default(10) });

function search({ query, limit }) {
  const words = query.split(/\s+/).filter((word) => word && !dropped.has(word));
  const rows = statement.all(words.map((word) => `"${word}"`).join(" OR "), limit);
  const results = rows.map(([id, source, stream, title, at, evidence]) => ({
    id: `${source}/${stream}:${id}`,
    source,
    stream,
    title,
    at,
    evidence,
  }));
  const found = { results };
  return { content: [{ type: "text", text: JSON.stringify(found) }], structuredContent: found };
}

// The tool for a server of either SDK.
export function register(server) {
  server.registerTool("search", { description, inputSchema }, async (asked) => search(asked));
  return server;
}

// Serves from the socket whose descriptor is the first argument.
export function serve(http) {
  http.listen({ fd: Number(process.argv[2]) });
}
