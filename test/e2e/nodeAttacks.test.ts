/**
 * Attacks of tenants on a real node and of odd certificates on its kubelet: real containerd, real kernel, the kubelet's real port. The node serves the next
 * pod afterwards.
 */
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { bmp, type CraftedAttributes, craftedCertificate, craftedRequest } from '#testing/craftedCertificates'
import { httpsCall } from '../support/httpsCall.ts'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip }
const name = 'e2e-attack'
let cluster: LocalCluster
let kubelet = { url: '', ca: '' }

const pki = (file: string) => fs.readFileSync(path.join(cluster.dir, 'home/clusters', name, 'pki', file), 'utf8')

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start(name, ['--nodes', '1'])
  const { nodes } = JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout)
  kubelet = { url: `https://${nodes[0].address}:10250`, ca: pki('ca.crt') }
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
})
after(async () => {
  if (!skip) await cluster?.delete()
})

const pod = (podName: string, spec: object) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: podName }, spec: { restartPolicy: 'Never', ...spec } })
const phase = (podName: string) => cluster.must(['get', 'pod', podName, '-o', 'jsonpath={.status.phase}'])
const shell = (script: string) => ({ image: 'web-app:1.0', command: ['sh', '-c', script] })

async function runs(podName: string): Promise<void> {
  await cluster.mustWith(pod(podName, { containers: [{ name: 'c', ...shell('true') }] }), ['apply', '-f', '-'])
  await eventually(
    `${podName} has run`,
    30_000,
    () => phase(podName),
    (seen) => seen === 'Succeeded',
  )
}

test('KUB-09 a node serves on when containers have pipes for termination messages', options, async () => {
  const volumeMounts = [{ name: 'v', mountPath: '/v' }]
  const containers = Array.from({ length: 8 }, (_, i) => ({
    name: `c${i}`,
    ...shell('true'),
    terminationMessagePath: '/end',
    volumeMounts: [{ name: 'v', mountPath: '/end', subPath: 'pipe' }],
  }))
  const spec = { volumes: [{ name: 'v', emptyDir: {} }], initContainers: [{ name: 'make', ...shell('busybox mkfifo /v/pipe'), volumeMounts }], containers }
  await cluster.mustWith(pod('pipes', spec), ['apply', '-f', '-'])
  await eventually(
    'the pod with pipes has run',
    60_000,
    () => phase('pipes'),
    (seen) => seen === 'Succeeded',
  )
  await runs('after-pipes')
})

test('KUB-13 a pod is evicted when its container fills its termination log beyond the limit', options, async () => {
  const container = {
    name: 'c',
    ...shell('busybox dd if=/dev/zero of=/dev/termination-log bs=1M count=64; sleep 600'),
    resources: { limits: { 'ephemeral-storage': '16Mi' } },
  }
  await cluster.mustWith(pod('words', { containers: [container] }), ['apply', '-f', '-'])
  const reason = () => cluster.must(['get', 'pod', 'words', '-o', 'jsonpath={.status.phase} {.status.reason}'])
  await eventually('the eviction', 60_000, reason, (seen) => seen === 'Failed Evicted')
})

const client = () => ({ cert: pki('ca.crt'), key: pki('ca.key'), privateKey: createPrivateKey(pki('ca.key')) })

const identities: readonly { name: string; subject: readonly CraftedAttributes[]; user: string }[] = [
  { name: 'two common names', subject: [[['CN', 'alice']], [['CN', 'mallory']]], user: 'mallory' },
  { name: 'a BMPString', subject: [[['CN', bmp('mallory')]]], user: 'mallory' },
]
for (const { name: what, subject, user } of identities)
  test(`KUB-17 the last common name of a certificate is the user of a real kubelet, ${what}`, options, async () => {
    const { status, text } = await httpsCall(kubelet, '/pods', craftedCertificate(client(), subject))
    assert.equal(`${status} ${text}`, `403 Forbidden (user=${user}, verb=get, resource=nodes, subresource(s)=[pods proxy])\n`)
  })

test('EXP-04 a request for system:masters as a BMPString is refused by a real cluster', options, async () => {
  const request = Buffer.from(craftedRequest([[['O', bmp('system:masters')]], [['CN', 'u']]])).toString('base64')
  const spec = { request, signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'] }
  const object = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata: { name: 'masters' }, spec }
  await assert.rejects(cluster.mustWith(JSON.stringify(object), ['create', '-f', '-']), /signer with system:masters group is not allowed/)
})

test('SDR-06 the secrets of a real node are closed to others on its disk', options, async () => {
  const home = path.join(cluster.dir, 'home/clusters', name)
  assert.equal(fs.statSync(home).mode & 0o777, 0o700)
  const node = path.join(home, 'nodes', fs.readdirSync(path.join(home, 'nodes'))[0] ?? '')
  for (const file of ['agent.json', 'agent.log', 'containerd.log', 'init.log', 'init.pid', 'containerd.toml'])
    assert.equal(fs.statSync(path.join(node, file)).mode & 0o077, 0, file)
})
