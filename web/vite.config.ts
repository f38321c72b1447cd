import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import { type Plugin, transformWithOxc } from "vite";
import { defineConfig } from "vitest/config";

// Where `npm run dev` finds a running Palaver; only development uses it.
const server = process.env["PALAVER_URL"] ?? "http://127.0.0.1:8420";

/** /sw.js: src/worker/offline.ts with the names of all files of the page, and a version that changes when one of them does. */
function offlineWorker(): Plugin {
  const source = new URL("src/worker/offline.ts", import.meta.url);
  const open = new URL("public/", import.meta.url);
  return {
    name: "offline-worker",
    apply: "build",
    enforce: "post",
    async generateBundle(_options, bundle) {
      const assets = Object.keys(bundle).filter((name) => name.startsWith("assets/"));
      const files = ["/", ...[...assets, ...readdirSync(open)].map((name) => `/${name}`)].toSorted();
      const index = bundle["index.html"];
      const version = createHash("sha256").update(JSON.stringify(files));
      if (index?.type === "asset") version.update(index.source);
      for (const name of readdirSync(open).toSorted()) version.update(readFileSync(new URL(name, open)));
      const { code } = await transformWithOxc(readFileSync(source, "utf8"), "offline.ts");
      const put = code
        .replace("__VERSION__", version.digest("hex").slice(0, 16))
        .replace('"__FILES__"', JSON.stringify(JSON.stringify(files)));
      this.emitFile({ type: "asset", fileName: "sw.js", source: put });
    },
  };
}

export default defineConfig({
  plugins: [react(), offlineWorker()],
  build: {
    // Inside the Python package, so that a wheel carries the page and nobody needs Node to run it.
    outDir: "../src/palaver/web_dist",
    emptyOutDir: true,
    assetsDir: "assets",
    sourcemap: false,
    // The page is served with `default-src 'none'`: nothing inline, no data: addresses.
    assetsInlineLimit: 0,
    modulePreload: {
      polyfill: false,
      // The names of all parts of all parts take a kilobyte of what the first picture waits for. Styles must be named: a part
      // is not drawn before its own are there.
      resolveDependencies: (_file, parts, { hostType }) => (hostType === "html" ? parts : parts.filter((name) => name.endsWith(".css"))),
    },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        // One file for all that the first picture waits for: cut into shared pieces it compresses a kilobyte worse.
        codeSplitting: { groups: [{ name: "first", tags: ["$initial"] }] },
      },
    },
  },
  worker: { format: "es" },
  server: {
    proxy: {
      "/api": { target: server, ws: true },
    },
  },
  test: {
    environment: "node",
    include: ["{src,tests}/**/*.test.{ts,tsx}"],
    passWithNoTests: true,
    // A wait without an end is a defect.
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
});
