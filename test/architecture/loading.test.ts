/**
 * A process loads only the modules that it needs: code that a node's processes load at start stays in memory, and reduces the memory for pods. Modules
 * that are loaded later, on demand, do not count.
 */
import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { build } from 'esbuild'
import { entryPoints, external } from '../../scripts/entryPoints.mjs'
import { groupsOf, programs } from '../../scripts/mergeChunks.mjs'

const root = path.resolve(import.meta.dirname, '../..')
const ofTheApiServer = /^src\/(cel|api\/cel|api\/kinds|api\/podSecurity|store|apiserver\/(?!endpoints\/)\w+|streaming\/(spdy|webSocket)\w*)\b/

function built(entries: string[]) {
  return build({
    absWorkingDir: root,
    entryPoints: entries,
    outdir: 'dist',
    write: false,
    metafile: true,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external,
  })
}

/** The files that are read before the entry's first line runs, with their sizes as built. */
async function loadedBy(entry: string): Promise<Map<string, number>> {
  const { metafile } = await built([entry])
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

/** What a program reads at start, without and with the chunks that were joined with those that it needs. */
test('joined chunks bring no program a file that it does not need', async () => {
  const { metafile } = await built(Object.values(entryPoints))
  const groups = groupsOf(metafile.outputs)
  assert.ok(groups.length > 0, 'chunks are joined')
  for (const program of programs) {
    const needed = new Set(Object.keys(metafile.outputs).filter((name) => metafile.outputs[name]?.entryPoint === program))
    for (const chunk of needed)
      for (const { path: next, kind } of metafile.outputs[chunk]?.imports ?? []) if (kind === 'import-statement' && metafile.outputs[next]) needed.add(next)
    const halfNeeded = groups.filter((group) => group.some((chunk) => needed.has(chunk)) && !group.every((chunk) => needed.has(chunk)))
    assert.deepEqual(halfNeeded, [], program)
  }
})
