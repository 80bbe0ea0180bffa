/** SDR-04: skiff export and skiff import from the command line, between two clusters with simulated nodes, and kubectl reads the file. */
import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { LocalCluster, obstacleToCluster } from './support/localCluster.ts'

const skip = obstacleToCluster(false)
const options = { skip, timeout: 120_000 }
const flags = ['--runtime', 'simulated']
let from: LocalCluster
let to: LocalCluster

before(async () => {
  if (skip) return
  from = await LocalCluster.start('e2e-export', flags)
  to = await LocalCluster.start('e2e-import', flags)
  await from.must(['create', 'namespace', 'shop'])
  await from.must(['create', 'deployment', 'web', '--image=nginx', '--replicas=2', '-n', 'shop'])
  await from.must(['rollout', 'status', 'deployment/web', '--timeout=60s', '-n', 'shop'])
  await from.must(['create', 'secret', 'generic', 'door', '--from-literal=code=1234', '-n', 'shop'])
})

after(async () => {
  if (skip) return
  await from?.delete()
  await to?.delete()
})

test('SDR-04 what one cluster exports, another one imports once, and its controllers start the pods', options, async () => {
  const file = path.join(from.dir, 'lab.jsonl')
  const saved = await from.skiff(['export', file, '--cluster', 'e2e-export'])
  assert.equal(saved.code, 0, saved.stderr)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const objects = readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(objects.map(({ kind, metadata: { name } }) => `${kind} ${name}`).toSorted(), ['Deployment web', 'Namespace shop', 'Secret door'])
  const read = await from.skiff(['export', '-', '--cluster', 'e2e-export', '-q'])
  assert.deepEqual([read.code, read.stdout], [0, readFileSync(file, 'utf8')], read.stderr)
  assert.match(await to.must(['create', '--dry-run=client', '-f', writeJson(file)]), /deployment\.apps\/web created \(dry run\)/)
  const tried = await to.skiff(['import', file, '--dry-run', '--cluster', 'e2e-import'])
  assert.match(tried.stderr, /3 objects would be created/)
  const first = await to.skiff(['import', file, '--cluster', 'e2e-import'])
  assert.equal(first.code, 0, first.stderr)
  await to.must(['rollout', 'status', 'deployment/web', '--timeout=60s', '-n', 'shop'])
  assert.equal(await to.must(['get', 'secret', 'door', '-n', 'shop', '-o', 'jsonpath={.data.code}']), 'MTIzNA==')
  const second = await to.skiff(['import', file, '--cluster', 'e2e-import'])
  assert.equal(second.code, 4)
  for (const name of ['namespaces shop', 'secrets shop/door', 'deployments.apps shop/web'])
    assert.ok(second.stderr.includes(`there already: ${name}\n`), second.stderr)
})

test('SDR-04 a file that is missing, and one that is no export, are refused by name', options, async () => {
  const bad = path.join(to.dir, 'bad.jsonl')
  writeFileSync(bad, '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}\n{"a":1}\n')
  const refused = await to.skiff(['import', bad, '--cluster', 'e2e-import'])
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, /line 2 is no object with apiVersion, kind and metadata\.name/)
  const missing = await to.skiff(['import', `${bad}.none`, '--cluster', 'e2e-import'])
  assert.equal(missing.code, 3)
  assert.match(missing.stderr, /does not exist/)
})

/** kubectl takes the objects of a file with this end. */
function writeJson(file: string): string {
  const copy = `${file}.json`
  writeFileSync(copy, readFileSync(file))
  return copy
}
