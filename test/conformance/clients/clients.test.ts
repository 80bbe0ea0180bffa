/**
 * Client libraries as they are, each a process of its own, against a real server process with its store on disk: they create, watch and apply
 * through a restart of the server, and through a compaction that makes their last version too old while they are not looking.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import path from 'node:path'
import { createInterface } from 'node:readline'
import test, { after, before, type TestContext } from 'node:test'
import type { ConfigMap } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import { clusterPaths } from '#main/localCluster/clusterState'
import { openLmdbStore } from '#store/drivers/lmdb'
import { realClock } from '#testing/realClock'
import { LocalCluster, obstacleToCluster } from '../../e2e/support/localCluster.ts'

const skip = obstacleToCluster(false)
const name = 'clients'
let cluster: LocalCluster

before(async () => {
  if (!skip) cluster = await LocalCluster.start(name, ['--runtime', 'simulated', '--simulated-nodes', '1'])
})
after(async () => {
  if (!skip) await cluster?.delete()
})

/** A running client program: what it said last that it knows. */
class Client {
  readonly #child: ChildProcess
  #known = ''
  #changed = () => {}
  #ended = ''

  constructor(command: string, args: readonly string[]) {
    this.#child = spawn(command, args, { env: cluster.env, stdio: ['pipe', 'pipe', 'inherit'] })
    this.#child.once('exit', (code) => {
      this.#ended = `the client ended with ${code}`
      this.#changed()
    })
    if (this.#child.stdout) {
      createInterface({ input: this.#child.stdout }).on('line', (line) => {
        this.#known = line
        this.#changed()
      })
    }
  }

  apply(object: string, value: string): void {
    this.#child.stdin?.write(`${object} ${value}\n`)
  }

  pause(): void {
    this.#child.kill('SIGSTOP')
  }

  goOn(): void {
    this.#child.kill('SIGCONT')
  }

  /** Waits until the client knows exactly this. */
  async knows(wanted: Readonly<Record<string, string>>, deadlineMs = 60_000): Promise<void> {
    let isOver = false
    const timer = setTimeout(() => {
      isOver = true
      this.#changed()
    }, deadlineMs)
    try {
      for (;;) {
        assert.equal(this.#ended, '')
        const known = this.#known === '' ? {} : JSON.parse(this.#known)
        // Every namespace has it.
        delete known['kube-root-ca.crt']
        if (isOver || JSON.stringify(known) === JSON.stringify(wanted)) {
          assert.deepEqual(known, wanted)
          return
        }
        await new Promise<void>((resolve) => {
          this.#changed = resolve
        })
      }
    } finally {
      clearTimeout(timer)
    }
  }

  stop(): void {
    this.goOn()
    this.#child.kill('SIGKILL')
  }
}

async function skiff(...args: string[]): Promise<void> {
  const { code, stderr } = await cluster.skiff(args)
  assert.equal(code, 0, `skiff ${args.join(' ')}: ${stderr}`)
}

/** Lets the stopped server's store forget all of its history. */
async function compact(): Promise<void> {
  const file = path.join(clusterPaths(cluster.env.SKIFF_HOME ?? '', name).store, 'data.mdb')
  const store = await openLmdbStore({ path: file, clock: realClock, log: noLog })
  await store.compact(await store.latestRevision())
  await store.close()
}

async function missesNothing(t: TestContext, namespace: string, command: string, args: readonly string[]): Promise<void> {
  const kubectl = (...words: string[]) => cluster.must([...words, '--namespace', namespace])
  const write = (object: string, value: string) => kubectl('create', 'configmap', object, `--from-literal=value=${value}`)
  await cluster.must(['create', 'namespace', namespace])
  const client = new Client(command, [...args, namespace])
  try {
    await t.test('it creates, applies, and sees what others do', async () => {
      await client.knows({ created: '1' })
      client.apply('applied', 'a')
      await write('theirs', 'x')
      await client.knows({ applied: 'a', created: '1', theirs: 'x' })
      const applied = JSON.parse(await cluster.must(['get', '--raw', `/api/v1/namespaces/${namespace}/configmaps/applied`])) as ConfigMap
      assert.equal(applied.metadata.managedFields?.[0]?.operation, 'Apply')
    })
    await t.test('it works after a restart of the server', async () => {
      await skiff('stop', name)
      await skiff('start', name)
      await write('afterwards', 'y')
      client.apply('applied', 'b')
      await client.knows({ afterwards: 'y', applied: 'b', created: '1', theirs: 'x' })
    })
    await t.test('it finds out what happened before a compaction that it slept through', async () => {
      client.pause()
      const before = await kubectl('get', 'configmap', 'created', '-o', 'jsonpath={.metadata.resourceVersion}')
      await kubectl('delete', 'configmap', 'theirs')
      await write('missed', 'z')
      await kubectl('patch', 'configmap', 'created', '-p', '{"data":{"value":"2"}}')
      await skiff('stop', name)
      await compact()
      await skiff('start', name)
      const late = `/api/v1/namespaces/${namespace}/configmaps?watch=1&timeoutSeconds=1&resourceVersion=${before}`
      const { stdout, stderr } = await cluster.kubectl(['get', '--raw', late])
      assert.match(stdout + stderr, /too old resource version/)
      client.goOn()
      await client.knows({ afterwards: 'y', applied: 'b', created: '2', missed: 'z' })
      client.apply('applied', 'c')
      await kubectl('delete', 'configmap', 'missed')
      await client.knows({ afterwards: 'y', applied: 'c', created: '2' })
    })
  } finally {
    client.stop()
  }
}

const script = (file: string) => path.join(import.meta.dirname, file)

test('API-01 the informer of @kubernetes/client-node misses nothing through a restart and a compaction', { skip }, (t) =>
  missesNothing(t, 'javascript', process.execPath, [script('javascript.mjs')]),
)

test("API-01 Debian's python3-kubernetes misses nothing through a restart and a compaction", { skip: skip || obstacleToPython() }, (t) =>
  missesNothing(t, 'python', '/usr/bin/python3', [script('python.py')]),
)

function obstacleToPython(): string | false {
  try {
    execFileSync('/usr/bin/python3', ['-c', 'import kubernetes'], { stdio: 'ignore' })
    return false
  } catch {
    return 'python3-kubernetes is not installed'
  }
}
