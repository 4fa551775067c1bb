// Builds the page into the Python package, or with --tests the unit tests into .tests. `make web` runs both.
import { copyFile, mkdir, readdir, rm } from "node:fs/promises";
import { build } from "esbuild";

const page = process.env.SPINNEY_PAGE ?? "../src/spinney/dashboard/page";

if (process.argv.includes("--tests")) {
  const tests = (await readdir("test")).filter((name) => /\.test\.tsx?$/.test(name));
  await rm(".tests", { recursive: true, force: true });
  await build({
    entryPoints: tests.map((name) => `test/${name}`),
    outdir: ".tests",
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
  });
} else {
  await rm(page, { recursive: true, force: true });
  await mkdir(page, { recursive: true });
  await build({
    entryPoints: { app: "src/main.tsx" },
    outdir: page,
    bundle: true,
    minify: true,
    target: "es2022",
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "inline",
    logLevel: "warning",
  });
  await copyFile("src/index.html", `${page}/index.html`);
  await copyFile("src/icon.svg", `${page}/icon.svg`);
}
