/** Builds the page of `skiff ui` into dist/ui: one entry with its styles, and chunks for the editor and the terminal that are loaded when they are shown. */
import fs from 'node:fs'
import path from 'node:path'
import { build } from 'esbuild'

const source = 'src/ui/page'

/** @param root the repository, with a slash @returns the names of the files that index.html loads */
export async function buildPage(root) {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { app: `${source}/main.tsx` },
    outdir: 'dist/ui',
    bundle: true,
    minify: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    tsconfigRaw: '{}',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    legalComments: 'none',
    metafile: true,
  })
  const outputs = Object.entries(metafile.outputs)
  const entry = outputs.find(([, { entryPoint }]) => entryPoint === `${source}/main.tsx`)
  if (!entry) throw new Error('the page has no entry')
  const [script, style] = [entry[0], entry[1].cssBundle].map((file) => path.basename(file))
  const html = fs.readFileSync(`${root}${source}/index.html`, 'utf8').replace('SCRIPT', `/${script}`).replace('STYLE', `/${style}`)
  fs.writeFileSync(`${root}dist/ui/index.html`, html)
  fs.copyFileSync(`${root}${source}/icon.svg`, `${root}dist/ui/icon.svg`)
  return { script, style }
}
