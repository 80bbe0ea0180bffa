/**
 * Directories of clusters that earlier versions made, one per data format, open with this build: their objects are there with their UIDs, and the cluster works.
 * Each holds `cluster.json` and the store of a stopped simulated cluster with a ConfigMap `kept` and a Deployment `web`; `start` makes new certificates.
 * That of format 2 was killed, with a lease of 63 bits and its key in the journal alone.
 * To add one: `skiff up format --runtime simulated`, create both, `skiff stop format`, and pack the directory without `pki` and logs.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { newestFormat } from '#main/localCluster/clusterState'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'

const options = { skip: obstacleToCluster(false), timeout: 60_000 }
const fixtures = path.resolve(import.meta.dirname, '../fixtures/dataDirectory')
const name = 'format'

/** UIDs of the ConfigMap, by the format. */
const uids: Readonly<Record<number, string>> = {
  1: '35ade42b-48ec-4aa4-8968-30feb07f8292',
  2: '62b02e30-412a-443b-b3fc-8f87ce15e571',
}

test('ETC-10 there is a directory of each data format up to the newest', () => {
  const formats = Array.from({ length: newestFormat }, (_, i) => i + 1)
  assert.deepEqual(fs.readdirSync(fixtures).sort(), formats.map((format) => `format-${format}.tgz`).sort())
  assert.deepEqual(Object.keys(uids).map(Number), formats)
})

for (const [format, uid] of Object.entries(uids)) {
  test(`ETC-10 a cluster directory of data format ${format} opens with its objects`, options, async () => {
    const home = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-format-'))
    const clusters = path.join(home, 'home', 'clusters')
    fs.mkdirSync(clusters, { recursive: true })
    execFileSync('tar', ['-xzf', path.join(fixtures, `format-${format}.tgz`), '-C', clusters])
    await choosePort(path.join(clusters, name, 'cluster.json'))
    const cluster = LocalCluster.at(name, home)
    try {
      const started = await cluster.skiff(['start', name])
      assert.equal(started.code, 0, started.stderr)
      assert.equal(await cluster.must(['get', 'configmap', 'kept', '-o', 'jsonpath={.metadata.uid} {.data.color}']), `${uid} blue`)
      const ready = ['get', 'deployment', 'web', '-o', 'jsonpath={.status.readyReplicas}']
      await eventually(
        'the pod of the Deployment',
        20_000,
        () => cluster.must(ready),
        (text) => text === '1',
      )
    } finally {
      await cluster.delete()
    }
  })
}

/** The port that the cluster was made with may be in use here. */
async function choosePort(file: string): Promise<void> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  fs.writeFileSync(file, JSON.stringify({ ...JSON.parse(fs.readFileSync(file, 'utf8')), port }))
}
