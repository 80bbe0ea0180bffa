/** Certificates are renewed while the cluster runs: no process restarts, and no client is interrupted. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { connect } from 'node:tls'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'
import { webCommand, writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true)
const name = 'e2e-certs'
let cluster: LocalCluster

before(async () => {
  if (!skip) cluster = await LocalCluster.start(name, ['--nodes', '1'])
})
after(async () => {
  if (!skip) await cluster?.delete()
})

/** The serial number of the certificate that a port shows. */
function shownBy(host: string, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    })
    socket.on('error', reject)
  })
}

interface Status {
  readonly server: string
  readonly nodes: readonly { readonly address: string }[]
  readonly pids: readonly { readonly pid: number }[]
}

const status = async () => JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout) as Status
const credentials = async () => (await fs.readFile(path.join(cluster.dir, 'kubeconfig'), 'utf8')).match(/client-certificate-data: .*/)?.[0]

test('SDR-07 certs renew gives a running cluster new certificates, its nodes and the kubeconfig included', { skip }, async () => {
  await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  await cluster.must(['run', 'web', '--image=web-app:1.0', '--restart=Never', '--command', '--', ...webCommand])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/web', '--timeout=60s'])
  const watching = cluster.follow(['get', 'configmaps', '-w', '--no-headers'])
  await watching.until(/kube-root-ca/)
  const { server, nodes, pids } = await status()
  const served = async () => [await shownBy('127.0.0.1', Number(new URL(server).port)), await shownBy(nodes[0]?.address ?? '', 10_250), await credentials()]
  const old = await served()
  assert.match(
    (await cluster.skiff(['certs', 'check', name])).stdout,
    /^apiserver +\S+ +36\dd +kubernetes$.*^e2e-certs-node-1\/kubelet +\S+ +36\dd +kubernetes$/ms,
  )

  const renewed = await cluster.skiff(['certs', 'renew', name])
  assert.equal(renewed.code, 0, renewed.stderr)
  const all = (now: readonly (string | undefined)[]) => now.every((one, i) => one !== old[i])
  await eventually('new certificates on every port and in the kubeconfig', 15_000, served, all)

  assert.equal(await cluster.mustWith('hello', ['exec', '-i', 'web', '--', 'cat']), 'hello')
  await cluster.must(['create', 'configmap', 'later'])
  await watching.until(/^later /m)
  watching.end()
  await cluster.must(['delete', 'pod', 'web', '--grace-period=1', '--timeout=30s'])
  assert.deepEqual((await status()).pids, pids)
})
