/** Deleting a cluster whose description cannot be read, without the command line. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { Progress } from '#cli/progress'
import { createExec } from '#host/exec'
import { exists } from '#host/files'
import { realClock } from '#testing/realClock'
import { clusterPaths, writeState } from './clusterState.ts'
import { createLocalClusterManager } from './localClusterManager.ts'

const damages: readonly { readonly name: string; damage(file: string): Promise<void>; readonly reason: RegExp }[] = [
  { name: 'is cut off', damage: (file) => fs.writeFile(file, '{"name": "a'), reason: /cluster\.json is damaged: .*: kubeconfig files / },
  {
    name: 'is of a newer format',
    damage: (file) => fs.writeFile(file, '{"name":"a","format":1000,"nodes":[]}'),
    reason: /has the data format 1000.*: kubeconfig files /,
  },
  {
    name: 'is unreadable',
    damage: async (file) => {
      await fs.rm(file)
      await fs.mkdir(file)
    },
    reason: /EISDIR.*: kubeconfig files /,
  },
]

async function inHome(
  run: (home: string, manager: ReturnType<typeof createLocalClusterManager>, notes: string[], progress: Progress) => Promise<void>,
): Promise<void> {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-manager-'))
  const manager = createLocalClusterManager({ clock: realClock, exec: createExec(), home, isRoot: false, platform: process.platform, self: [] })
  const notes: string[] = []
  const progress: Progress = { step: (_title, work) => work(() => {}), note: (text) => void notes.push(text) }
  const state = { name: 'a', id: '00a7', port: 1, nodes: [], simulatedNodes: [], verbosity: 2, kubeconfigs: [{ file: '/k', previousContext: '' }] }
  await writeState(clusterPaths(home, 'a'), state)
  await run(home, manager, notes, progress).finally(() => fs.rm(home, { recursive: true }))
}

for (const { name, damage, reason } of damages) {
  test(`delete of a cluster whose description ${name} removes it, and says what may be left and why`, () =>
    inHome(async (home, manager, notes, progress) => {
      const paths = clusterPaths(home, 'a')
      await damage(paths.state)
      assert.deepEqual(await manager.kubeconfigs('a'), [])
      const { removed, left } = await manager.delete('a', progress, false)
      assert.ok(removed.includes(`folder ${paths.dir}`))
      assert.equal(left.length, 1)
      assert.match(left[0] ?? '', reason)
      assert.deepEqual(notes, ['The description of cluster "a" cannot be read: removing what carries its marks'])
      assert.equal(await exists(paths.dir), false)
    }))
}

test('delete of a cluster whose description is whole leaves nothing to report', () =>
  inHome(async (home, manager, notes, progress) => {
    assert.deepEqual(await manager.kubeconfigs('a'), [{ file: '/k', previousContext: '' }])
    assert.deepEqual((await manager.delete('a', progress, false)).left, [])
    assert.deepEqual(notes, [])
    assert.equal(await exists(clusterPaths(home, 'a').dir), false)
  }))

test('ETC-20 delete of a cluster that is only a restored store removes the store', () =>
  inHome(async (home, manager, _notes, progress) => {
    const { dir, store } = clusterPaths(home, 'b')
    assert.equal(await manager.exists('b'), false)
    await fs.mkdir(store, { recursive: true })
    assert.equal(await manager.exists('b'), true)
    assert.deepEqual(await manager.names(), ['a', 'b'])
    assert.equal((await manager.status('b')).restored, true)
    await assert.rejects(manager.kubeconfig('b'), { message: 'cluster "b" was restored and never started', hint: 'start it with: skiff up b' })
    const { removed, left } = await manager.delete('b', progress, false)
    assert.ok(removed.includes(`folder ${dir}`))
    assert.deepEqual(left, [])
    assert.equal(await exists(dir), false)
  }))

test('ETC-20 prune keeps a store that was restored for a cluster that is not there yet', () =>
  inHome(async (home, manager, _notes, progress) => {
    await fs.mkdir(clusterPaths(home, 'b').store, { recursive: true })
    await fs.mkdir(path.join(home, 'clusters', 'c', 'nodes'), { recursive: true })
    assert.ok(!(await manager.prune(progress, true)).removed.some((line) => line.includes(clusterPaths(home, 'b').dir)))
    assert.ok((await manager.prune(progress, true)).removed.includes(`directory ${clusterPaths(home, 'c').dir}`))
  }))

test('a cluster whose description cannot be reached exists, and says why it cannot be read', () =>
  inHome(async (home, manager) => {
    // What a missing right gives, for root as well.
    const loop = path.join(home, 'clusters', 'loop')
    await fs.symlink(loop, loop)
    assert.equal(await manager.exists('loop'), true)
    assert.equal(await manager.isGone(loop), false)
    await assert.rejects(manager.status('loop'), { code: 'ELOOP' })
    assert.equal(await manager.isGone(path.join(home, 'clusters', 'nothing')), true)
  }))
