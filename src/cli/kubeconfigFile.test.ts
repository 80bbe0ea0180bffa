import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { parseYaml } from '#api/machinery/yaml'
import type { Clock } from '#base/clock'
import { kubeconfigPath, mergeKubeconfig, refreshKubeconfig, removeFromKubeconfig } from './kubeconfigFile.ts'

/** The lock is contended for real: a wait is one turn of the event loop. */
const clock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: () => nextTurn(),
  timer: () => ({ cancel: () => {} }),
  turn: () => nextTurn(),
}

const entry = (name: string) => ({ name, server: 'https://127.0.0.1:6443', ca: 'CA', clientCert: 'CERT', clientKey: 'KEY' })

async function inTemporary(fn: (dir: string) => Promise<void>): Promise<void> {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-kubeconfig-'))
  try {
    await fn(dir)
  } finally {
    await fs.rm(dir, { recursive: true, force: true })
  }
}

const foreign = `apiVersion: v1
kind: Config
current-context: work
clusters:
- name: work
  cluster: {server: https://work.example:6443, extra-field: kept}
contexts:
- name: work
  context: {cluster: work, user: me, namespace: team}
users:
- name: me
  user: {token: secret}
extensions: [kept]
`

test('the file is chosen as kubectl chooses it', () =>
  inTemporary(async (dir) => {
    const [first, second] = [path.join(dir, 'a'), path.join(dir, 'b')]
    assert.equal(await kubeconfigPath({ flag: first, variable: second, home: dir }), first)
    assert.equal(await kubeconfigPath({ variable: `${first}:${second}`, home: dir }), second)
    await fs.writeFile(first, '')
    assert.equal(await kubeconfigPath({ variable: `${first}:${second}`, home: dir }), first)
    assert.equal(await kubeconfigPath({ home: dir }), path.join(dir, '.kube', 'config'))
  }))

test('merging keeps what is there, sets the mode, and removing restores the context of before', () =>
  inTemporary(async (dir) => {
    const file = path.join(dir, 'config')
    await fs.writeFile(file, foreign, { mode: 0o644 })
    const before = parseYaml(foreign) as Record<string, unknown>
    assert.deepEqual(await mergeKubeconfig(file, entry('skiff-a'), clock), { previous: 'work' })
    assert.equal((await fs.stat(file)).mode & 0o777, 0o600)
    const merged = parseYaml(await fs.readFile(file, 'utf8')) as { 'current-context': string; clusters: unknown[]; extensions: unknown }
    assert.equal(merged['current-context'], 'skiff-a')
    assert.equal(merged.clusters.length, 2)
    assert.deepEqual(merged.extensions, ['kept'])
    assert.deepEqual(await mergeKubeconfig(file, entry('skiff-a'), clock), { previous: '' })
    assert.equal(await removeFromKubeconfig(file, 'skiff-a', 'work', clock), true)
    assert.deepEqual(parseYaml(await fs.readFile(file, 'utf8')), before)
    assert.equal(await removeFromKubeconfig(file, 'skiff-a', 'work', clock), false)
  }))

test('twenty writers at once leave one valid file with all their entries', () =>
  inTemporary(async (dir) => {
    const file = path.join(dir, 'sub', 'config')
    await Promise.all(Array.from({ length: 20 }, (_, i) => mergeKubeconfig(file, entry(`skiff-${i}`), clock)))
    const merged = parseYaml(await fs.readFile(file, 'utf8')) as { contexts: unknown[] }
    assert.equal(merged.contexts.length, 20)
    assert.deepEqual(await fs.readdir(path.dirname(file)), ['config'])
  }))

test('a lock that kubectl left is waited for, then named; a link stays a link', () =>
  inTemporary(async (dir) => {
    const [file, linked] = [path.join(dir, 'config'), path.join(dir, 'linked')]
    await fs.writeFile(linked, foreign)
    await fs.symlink(linked, file)
    await fs.writeFile(`${file}.lock`, '')
    let nowMs = 0
    const sleep = async (ms: number) => {
      nowMs += ms
    }
    const hurried: Clock = { ...clock, monotonicMs: () => nowMs, sleep }
    await assert.rejects(mergeKubeconfig(file, entry('skiff-a'), hurried), {
      exit: 'conflict',
      message: `${file}.lock is held by another program`,
      hint: `if none runs, remove ${file}.lock`,
    })
    assert.equal(nowMs, 10_000)
    assert.equal(await fs.readFile(linked, 'utf8'), foreign)
    await fs.rm(`${file}.lock`)
    await mergeKubeconfig(file, entry('skiff-a'), clock)
    assert.ok((await fs.lstat(file)).isSymbolicLink())
    assert.match(await fs.readFile(linked, 'utf8'), /current-context: skiff-a/)
    assert.deepEqual((await fs.readdir(dir)).sort(), ['config', 'linked'])
  }))

test('a file that is no kubeconfig is refused with its name, and left alone', () =>
  inTemporary(async (dir) => {
    const file = path.join(dir, 'config')
    await fs.writeFile(file, 'a: [')
    await assert.rejects(mergeKubeconfig(file, entry('x'), clock), { name: 'CommandError', exit: 'conflict' })
    assert.equal(await fs.readFile(file, 'utf8'), 'a: [')
  }))

test('an entry is brought up to date where it stands, and nowhere else', () =>
  inTemporary(async (dir) => {
    const file = path.join(dir, 'config')
    await refreshKubeconfig(file, entry('skiff-a'), clock)
    await assert.rejects(fs.access(file))
    await fs.writeFile(file, foreign)
    await refreshKubeconfig(file, entry('skiff-a'), clock)
    assert.equal(await fs.readFile(file, 'utf8'), foreign)
    await mergeKubeconfig(file, entry('skiff-a'), clock)
    await mergeKubeconfig(file, entry('skiff-b'), clock)
    await refreshKubeconfig(file, { ...entry('skiff-a'), clientCert: 'NEW' }, clock)
    const config = parseYaml(await fs.readFile(file, 'utf8')) as Record<'users' | 'clusters', { name: string; user?: object }[]> & Record<string, unknown>
    const certificates = config.users.map(({ name, user }) => [name, (user as Record<string, string>)['client-certificate-data']])
    const base64 = (text: string) => Buffer.from(text).toString('base64')
    assert.deepEqual(certificates, [
      ['me', undefined],
      ['skiff-a', base64('NEW')],
      ['skiff-b', base64('CERT')],
    ])
    assert.equal(config['current-context'], 'skiff-b')
    const { mtimeMs } = await fs.stat(file)
    await refreshKubeconfig(file, { ...entry('skiff-a'), clientCert: 'NEW' }, clock)
    assert.equal((await fs.stat(file)).mtimeMs, mtimeMs)
  }))
