import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// Where `npm run dev` finds a running Palaver; only development uses it.
const server = process.env["PALAVER_URL"] ?? "http://127.0.0.1:8420";

export default defineConfig({
  plugins: [react()],
  build: {
    // Inside the Python package, so that a wheel carries the page and nobody needs Node to run it.
    outDir: "../src/palaver/web_dist",
    emptyOutDir: true,
    assetsDir: "assets",
    sourcemap: false,
    // The page is served with `default-src 'none'`: nothing inline, no data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
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
