/**
 * A process loads only the modules that it needs: code that a node's processes load at start stays in memory, and reduces the memory for pods. Modules
 * that are loaded later, on demand, do not count.
 */
import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { build } from 'esbuild'

const root = path.resolve(import.meta.dirname, '../..')
const packages = ['@peculiar/x509', 'reflect-metadata', 'lmdb']
const ofTheApiServer = /^src\/(cel|api\/cel|api\/kinds|api\/podSecurity|store|apiserver\/(?!endpoints\/)\w+|streaming\/(spdy|webSocket)\w*)\b/

/** The files that are read before the entry's first line runs, with their sizes as built. */
async function loadedBy(entry: string): Promise<Map<string, number>> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outdir: 'dist',
    write: false,
    metafile: true,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: packages,
  })
  const files = new Map<string, number>()
  const chunks = Object.keys(metafile.outputs).filter((name) => metafile.outputs[name]?.entryPoint === entry)
  for (const chunk of chunks) {
    const output = metafile.outputs[chunk]
    for (const [file, { bytesInOutput }] of Object.entries(output?.inputs ?? {})) files.set(file, (files.get(file) ?? 0) + bytesInOutput)
    for (const { path: next, kind } of output?.imports ?? [])
      if (kind === 'import-statement' && metafile.outputs[next] && !chunks.includes(next)) chunks.push(next)
  }
  return files
}

for (const entry of ['src/main/layouts/kubelet.ts', 'src/main/layouts/nodeAgent.ts']) {
  test(`${entry} loads at most 1.3 MB, and nothing that only the API server or a stream needs`, async () => {
    const files = await loadedBy(entry)
    assert.ok(files.has('src/kubelet/kubelet.ts'), 'the kubelet itself is loaded')
    assert.deepEqual(
      [...files.keys()].filter((file) => ofTheApiServer.test(file)),
      [],
    )
    const bytes = [...files.values()].reduce((sum, size) => sum + size, 0)
    assert.ok(bytes <= 1_300_000, `${bytes} bytes`)
  })
}
