/** What a command prints reaches a slow reader whole: a pipe takes 64 KiB at once, and the process must not end before the rest is read. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { clusterPaths, writeState } from '#main/localCluster/clusterState'

const root = path.resolve(import.meta.dirname, '../../..')
const skiff = [process.execPath, '--import', path.join(root, 'node_modules/tsx/dist/loader.mjs'), path.join(root, 'src/main/skiff.ts')]
const nodeCount = 10_000

test('ARC-13 the status of ten thousand nodes reaches a reader that pauses after the first line', async () => {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-long-output-'))
  try {
    const simulatedNodes = Array.from({ length: nodeCount }, (_, index) => `big-sim-${index + 1}`)
    await writeState(clusterPaths(home, 'big'), { format: 2, name: 'big', id: '0001', port: 1, nodes: [], simulatedNodes, verbosity: 2 })
    const reader = '"$@" | { IFS= read -r first; sleep 2; printf "%s\\n" "$first"; cat; }'
    const { stdout } = await promisify(execFile)('sh', ['-c', reader, 'sh', ...skiff, 'status', 'big', '--nodes', '-o', 'json'], {
      env: { ...process.env, SKIFF_HOME: home },
      maxBuffer: 1 << 24,
    })
    const status = JSON.parse(stdout) as { nodes: unknown[] }
    assert.equal(status.nodes.length, nodeCount)
  } finally {
    await fs.rm(home, { recursive: true, force: true })
  }
})
