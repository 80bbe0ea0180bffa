/** Finding and removing the things of a cluster on the host. Processes are real; interfaces are those of an `ip` that the test controls. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { CommandError } from '#cli/exitCodes'
import { createExec, type Exec } from '#host/exec'
import { realClock } from '#testing/realClock'
import { markVariable } from './clusterState.ts'
import { type ClusterMark, markOf, removeTag, taggedMarks, writeTag } from './clusterTags.ts'
import { findRemains, goneClusters, type HostPlaces, removeRemains } from './remains.ts'

const linux = { skip: process.platform === 'linux' ? false : 'reads /proc' }
const root = { skip: process.getuid?.() === 0 && process.platform === 'linux' ? false : 'needs root' }

interface Host {
  readonly mark: ClusterMark
  readonly places: HostPlaces
  /** Interfaces that `ip` shows, and deletes unless they are stuck. */
  readonly links: Set<string>
  readonly tools: { readonly clock: typeof realClock; readonly exec: Exec }
  /** Starts a process that carries a cluster's variable. */
  start(dir: string, ...prefix: string[]): Promise<ChildProcess>
  /** Finds what the cluster has, and removes it. */
  remove(): Promise<string[]>
  /** How often `ip` has listed the interfaces. */
  listings(): number
}

async function onHost(run: (host: Host) => Promise<void>): Promise<void> {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-remains-'))
  const places = { tags: path.join(dir, 'tags'), namespaces: path.join(dir, 'netns') }
  const links = new Set<string>()
  let listed = 0
  const answer = (code: number, text: string) => ({ code, stdout: text, stderr: code === 0 ? '' : text, timedOut: false })
  const exec = {
    run: async (_command: string, args: readonly string[]) => {
      if (args.includes('show')) listed++
      if (args.includes('show')) return links.has('broken') ? answer(1, 'netlink is down') : answer(0, JSON.stringify([...links].map((ifname) => ({ ifname }))))
      const name = args.at(-1) ?? ''
      if (links.has('stuck')) return answer(2, 'RTNETLINK answers: Operation not permitted')
      return links.delete(name) ? answer(0, '') : answer(1, `Cannot find device "${name}"`)
    },
  } as unknown as Exec
  const children: ChildProcess[] = []
  const start = async (marked: string, ...prefix: string[]) => {
    const [file = '', ...args] = [...prefix, process.execPath, '-e', "process.stdin.resume(); console.log('runs')"]
    const child = spawn(file, args, { env: { ...process.env, [markVariable]: marked }, stdio: ['pipe', 'pipe', 'ignore'] })
    children.push(child)
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    return child
  }
  try {
    const mark = markOf(path.join(dir, 'home'), 'a')
    const tools = { clock: realClock, exec }
    const remove = async () => removeRemains(tools, mark, await findRemains(tools, mark, places), places)
    await run({ mark, places, links, tools, start, remove, listings: () => listed })
  } finally {
    for (const child of children) child.kill('SIGKILL')
    // A child that has ended already emits no further exit.
    await Promise.all(children.map((child) => (child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined)))
    await fs.rm(dir, { recursive: true })
  }
}

test('prune finds a cluster by a process of this host, and kills the process', linux, () =>
  onHost(async ({ mark, places, tools, start, remove }) => {
    const child = await start(mark.dir)
    const ended = once(child, 'exit')
    const isFound = async () => (await goneClusters(places)).some(({ dir }) => dir === mark.dir)
    assert.ok(await isFound())
    assert.deepEqual(
      (await findRemains(tools, mark, places)).processes.map(({ pid }) => pid),
      [child.pid],
    )
    assert.deepEqual(await remove(), [])
    assert.deepEqual(await ended, [null, 'SIGKILL'])
    assert.equal(await isFound(), false)
  }),
)

test('a process in a mount or pid namespace of its own, such as a container’s, is not found by its variable', root, () =>
  onHost(async ({ mark, places, tools, start }) => {
    for (const namespace of [['-m'], ['-p', '--fork', '--kill-child']]) {
      const child = await start('', 'unshare', ...namespace, 'env', `${markVariable}=${mark.dir}`)
      assert.deepEqual((await findRemains(tools, mark, places)).processes, [])
      assert.ok(!(await goneClusters(places)).some(({ dir }) => dir === mark.dir))
      child.kill('SIGKILL')
    }
  }),
)

test('interfaces with a cluster’s id are found only when the register names the cluster’s directory under it', linux, () =>
  onHost(async ({ mark, places, links, tools, remove, listings }) => {
    links.add(`skiff-${mark.id}`)
    links.add(`sk${mark.id}n0`)
    links.add('eth0')
    const found = async () => (await findRemains(tools, mark, places)).links
    assert.deepEqual(await found(), [])
    // A name that leads to the same id, which a container may choose: 65,536 tries find one.
    const other = { ...mark, dir: '/elsewhere/clusters/b' }
    await writeTag(other, places.tags)
    assert.deepEqual(await found(), [])
    assert.deepEqual(await remove(), [])
    assert.equal(links.size, 3)
    await removeTag(mark, places.tags)
    assert.deepEqual(await taggedMarks(places.tags), [{ ...markOf('/elsewhere', 'b'), id: mark.id }])
    await removeTag(other, places.tags)
    await writeTag(mark, places.tags)
    assert.deepEqual(await found(), [`skiff-${mark.id}`, `sk${mark.id}n0`])
    const before = listings()
    assert.deepEqual(await remove(), [])
    // Once to find them, once to see that they are gone.
    assert.equal(listings(), before + 2)
    assert.deepEqual([...links], ['eth0'])
  }),
)

test('STO-09 a loop device over a file of a node is found by the file and detached, and one over another file stays', root, (context) =>
  onHost(async ({ mark, places }) => {
    const exec = createExec()
    const tools = { clock: realClock, exec }
    const open = async (file: string) => {
      await fs.mkdir(path.dirname(file), { recursive: true })
      await fs.writeFile(file, Buffer.alloc(4096))
      const { code, stdout } = await exec.run('losetup', ['--find', '--show', file])
      return code === 0 ? stdout.trim() : undefined
    }
    const own = await open(path.join(mark.dir, 'nodes/n/kubelet/disk'))
    const other = await open(path.join(path.dirname(places.tags), 'other'))
    try {
      if (own === undefined || other === undefined) return context.skip('this host has no loop devices')
      await writeTag(mark, places.tags)
      const found = await findRemains(tools, mark, places)
      assert.deepEqual([found.loops, found.unread], [[own], []])
      assert.deepEqual(await removeRemains(tools, mark, found, places), [])
      assert.equal((await exec.run('losetup', [own])).code, 1)
      assert.equal((await exec.run('losetup', [other])).code, 0)
    } finally {
      for (const device of [own, other]) if (device !== undefined) await exec.run('losetup', ['--detach', device])
    }
  }),
)

test('a cluster is not made with the id of another one that is there', linux, () =>
  onHost(async ({ mark, places }) => {
    const other = path.join(path.dirname(places.tags), 'other/clusters/b')
    await fs.mkdir(other, { recursive: true })
    await writeTag({ ...mark, dir: other }, places.tags)
    // Its directory is gone: the id is free.
    await writeTag(mark, places.tags)
    await writeTag({ ...mark, dir: other }, places.tags)
    await fs.writeFile(path.join(other, 'cluster.json'), '{}')
    await assert.rejects(writeTag(mark, places.tags), (error) => error instanceof CommandError && error.exit === 'conflict' && error.message.includes(other))
  }),
)

test('a removal reports what it could not read or remove, and removes the rest', linux, () =>
  onHost(async ({ mark, places, links, remove, start }) => {
    await writeTag(mark, places.tags)
    links.add('broken')
    const child = await start(mark.dir)
    const ended = once(child, 'exit')
    assert.deepEqual(await remove(), ['not looked at: interfaces: ip -json link show: exit 1: netlink is down'])
    assert.deepEqual(await ended, [null, 'SIGKILL'])
    links.delete('broken')
    links.add('stuck')
    links.add(`skiff-${mark.id}`)
    assert.deepEqual(await remove(), [
      `interface skiff-${mark.id} is still there`,
      `ip link del skiff-${mark.id}: exit 2: RTNETLINK answers: Operation not permitted`,
    ])
  }),
)
