/** Time travel through the command line (X5, LRN-02): skiff at, history, diff and fork with the real kubectl, over the embedded store, across a restart. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import { after, before, test } from 'node:test'
import { LocalCluster, obstacleToCluster, skiffBin } from './support/localCluster.ts'

const skip = obstacleToCluster(false)
const options = { skip }
const forkName = 'e2e-past-fork'
let cluster: LocalCluster
/** The state with deployment web, and with configmap a as it was created. */
let then: string

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start('e2e-past', ['--runtime', 'simulated', '--history', '1h', '--history-size', '20Mi'])
  await cluster.must(['create', 'deployment', 'web', '--image=nginx', '--replicas=2'])
  await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=60s'])
  await cluster.must(['create', 'secret', 'generic', 's', '--from-literal=p=old'])
  await cluster.must(['create', 'configmap', 'a', '--from-literal=x=1'])
  then = await cluster.must(['get', 'configmap', 'a', '-o', 'jsonpath={.metadata.resourceVersion}'])
  await cluster.must(['patch', 'configmap', 'a', '-p', '{"data":{"x":"2"}}'])
  await cluster.must(['delete', 'deployment', 'web', '--cascade=foreground'])
})

after(async () => {
  if (skip) return
  await cluster?.skiff(['delete', forkName])
  await cluster?.delete()
})

const at = (...args: string[]) => cluster.skiff(['at', '--cluster', 'e2e-past', ...args])

test('X5 skiff at reads a deleted deployment with kubectl, and its exit code is kubectl’s', options, async () => {
  const found = await at(then, 'get', 'deployment,configmap', '-n', 'default', '-o', 'jsonpath={.items[0].metadata.name}/{.items[1].data.x}')
  assert.deepEqual([found.code, found.stdout], [0, 'web/1'], found.stderr)
  const refused = await at(then, 'delete', 'configmap', 'a')
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /the past is read-only/)
})

test('X5 skiff at serves until it is ended, behind a kubeconfig of the user alone, which goes with it', options, async () => {
  const child = spawn(process.execPath, [skiffBin, 'at', '--cluster', 'e2e-past', then], { env: cluster.env, stdio: ['ignore', 'pipe', 'pipe'] })
  const file = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (text) => resolve(String(text).trim()))
    child.once('exit', (code) => reject(new Error(`ended with ${code}`)))
  })
  assert.equal(fs.statSync(file).mode & 0o777, 0o600)
  assert.match(await cluster.must(['--kubeconfig', file, 'get', 'deployment', 'web', '--no-headers']), /^web /)
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGINT')
  assert.equal(await ended, 130)
  assert.equal(fs.existsSync(file), false)
})

test('LRN-02 skiff history shows each version with its writer and fields, and masks Secrets', options, async () => {
  const { stdout, stderr } = await cluster.skiff(['history', 'cm', 'a', '--cluster', 'e2e-past'])
  assert.match(
    stdout,
    /^revision \d+ {3}20\S+Z {3}updated by kubectl-patch \(Update\)\n {2}~ data\.x: "1" -> "2"\nrevision \d+ {3}20\S+Z {3}created by kubectl-create \(Update\)\n$/,
    stderr,
  )
  assert.match((await cluster.skiff(['history', 'deployment/web', '--cluster', 'e2e-past'])).stdout, /^revision \d+ {3}\S+ {3}deleted\n/)
})

test('X5 skiff diff names what changed since a revision', options, async () => {
  const { stdout, stderr } = await cluster.skiff(['diff', then, 'cm', 'deployments', '-n', 'default', '--cluster', 'e2e-past'])
  assert.match(stdout, /\n~ configmaps default\/a\n {4}~ data\.x: "1" -> "2"\n- deployments\.apps default\/web\n$/, stderr)
})

test('X5 history survives a restart; what is older than it is refused with the way to keep more', options, async () => {
  await cluster.skiff(['stop', 'e2e-past'])
  const start = await cluster.skiff(['start', 'e2e-past'])
  assert.equal(start.code, 0, start.stderr)
  assert.equal((await at(then, 'get', 'configmap', 'a', '-o', 'jsonpath={.data.x}')).stdout, '1')
  assert.match((await at(then, 'get', 'deployment', 'web', '--no-headers')).stdout, /^web /, 'deleted before the restart')
  const early = await at('-10h', 'get', 'pods')
  assert.equal(early.code, 3)
  assert.match(early.stderr, /^error: there is no history of -10h: the oldest is of 20\S+Z \(revision \d+\)\nhint: .*--history/)
  assert.match((await cluster.skiff(['status', 'e2e-past'])).stdout, /^history: {3}since 20\S+Z, \d/m)
})

test('X5 skiff fork makes a cluster with the objects of a revision, linked to their new owners', options, async () => {
  const { code, stdout, stderr } = await cluster.skiff(['fork', then, forkName, '--cluster', 'e2e-past'])
  assert.equal(code, 0, stderr)
  assert.match(stdout, new RegExp(`^Cluster "${forkName}" has \\d+ objects of revision ${then};`))
  assert.doesNotMatch(stdout, /Refused/)
  const must = (...args: string[]) => cluster.must(['--context', `skiff-${forkName}`, ...args])
  assert.equal(await must('get', 'configmap', 'a', '-o', 'jsonpath={.data.x}'), '1')
  await must('rollout', 'status', 'deployment/web', '--timeout=60s')
  const [owner, uid] = [
    await must('get', 'rs', '-l', 'app=web', '-o', 'jsonpath={.items[*].metadata.ownerReferences[*].uid}'),
    await must('get', 'deployment', 'web', '-o', 'jsonpath={.metadata.uid}'),
  ]
  assert.equal(owner, uid)
  assert.equal((await cluster.skiff(['fork', then, forkName, '--cluster', 'e2e-past'])).code, 4)
})
