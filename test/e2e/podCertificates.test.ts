/** A pod of a real node gets a key and a certificate from a signer, and trust anchors from bundles. Real containerd, real kubectl; the test is the signer. */
import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { PodCertificateRequest } from '#api/gen/types/certificates.v1beta1'
import type { CertificateAuthority } from '#controllers/certificates/x509'
import { createAuthority } from '#main/pki/certificates'
import { issuedStatus } from '../support/podCertificates.ts'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip, timeout: 120_000 }
const name = 'e2e-podcert'
const gates = 'ClusterTrustBundle=true,ClusterTrustBundleProjection=true,PodCertificateRequest=true'
const signerName = 'example.com/e2e'
let cluster: LocalCluster
let authority: CertificateAuthority

const projected = {
  sources: [
    { podCertificate: { signerName, keyType: 'ECDSAP256', keyPath: 'key.pem', certificateChainPath: 'chain.pem', credentialBundlePath: 'both.pem' } },
    { clusterTrustBundle: { signerName: 'kubernetes.io/kube-apiserver-serving', labelSelector: {}, path: 'api.pem' } },
    { clusterTrustBundle: { name: 'ours', path: 'ours.pem' } },
  ],
}
const pod = (podName: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: podName },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'app',
        image: 'web-app:1.0',
        command: ['sh', '-c', 'sleep 100000'],
        securityContext: { runAsUser: 1234 },
        volumeMounts: [{ name: 'certificates', mountPath: '/certificates', readOnly: true }],
      },
    ],
    volumes: [{ name: 'certificates', projected }],
  },
})
const read = (podName: string, file: string) => cluster.must(['exec', podName, '--', 'cat', `/certificates/${file}`])
const requestOf = (podName: string) =>
  eventually(
    `a request for ${podName}`,
    30_000,
    async () => {
      const found = JSON.parse(await cluster.must(['get', 'podcertificaterequests', '-o', 'json'])) as { items: PodCertificateRequest[] }
      return found.items.find(({ spec }) => spec.podName === podName)
    },
    (request) => request !== undefined,
  ) as Promise<PodCertificateRequest>
const setStatus = ({ metadata }: PodCertificateRequest, status: PodCertificateRequest['status']) => {
  const patch = JSON.stringify({ status })
  return cluster.must(['patch', 'podcertificaterequests', metadata.name ?? '', '--subresource=status', '--type=merge', '-p', patch])
}

before(async () => {
  if (skip) return
  authority = await createAuthority('e2e', Date.now(), 30)
  cluster = await LocalCluster.start(name, [
    ...['--kube-apiserver-arg', `feature-gates=${gates}`, '--kube-apiserver-arg', 'runtime-config=certificates.k8s.io/v1beta1=true'],
    ...['--kube-controller-manager-arg', `feature-gates=${gates}`],
  ])
  const [image = ''] = await writeWebImage(cluster.dir, ['1.0'])
  const loaded = await cluster.skiff(['image', 'load', '--name', name, image])
  assert.equal(loaded.code, 0, loaded.stderr)
  const bundle = { apiVersion: 'certificates.k8s.io/v1beta1', kind: 'ClusterTrustBundle', metadata: { name: 'ours' }, spec: { trustBundle: authority.cert } }
  await cluster.mustWith(JSON.stringify(bundle), ['apply', '-f', '-'])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

test('STO-03 a pod waits for its certificate, and finds key, certificates and trust anchors in its volume, which only its user may read', options, async () => {
  await cluster.mustWith(JSON.stringify(pod('app')), ['apply', '-f', '-'])
  const request = await requestOf('app')
  const events = () => cluster.must(['get', 'events', '--field-selector=reason=FailedMount,involvedObject.name=app', '-o', 'jsonpath={.items[*].message}'])
  await eventually('the reason of the wait', 20_000, events, (text) => text.includes('credential bundle is not issued yet'))
  await setStatus(request, await issuedStatus(request, authority, Date.now()))
  await cluster.must(['wait', '--for=condition=Ready', 'pod/app', '--timeout=60s'], 70_000)
  const [key, chain, both, api, ours] = await Promise.all(['key.pem', 'chain.pem', 'both.pem', 'api.pem', 'ours.pem'].map((file) => read('app', file)))
  const leaf = new X509Certificate(chain ?? '')
  assert.equal(leaf.checkPrivateKey(createPrivateKey(key ?? '')), true)
  assert.equal(leaf.verify(new X509Certificate(authority.cert).publicKey), true)
  assert.equal(leaf.checkHost('app.example.com'), 'app.example.com')
  assert.equal(both, `${key}\n${chain}`)
  const certificateOf = (pem: string) => new X509Certificate(pem).fingerprint256
  const own = fs.readFileSync(path.join(cluster.dir, 'home/clusters', name, 'pki/ca.crt'), 'utf8')
  assert.deepEqual([certificateOf(api ?? ''), certificateOf(ours ?? '')], [certificateOf(own), certificateOf(authority.cert)])
  assert.equal(await cluster.must(['exec', 'app', '--', 'sh', '-c', 'stat -L -c "%a %u" /certificates/key.pem']), '600 1234')
})

test('STO-03 a pod whose certificate is denied stays without it, and an event says why', options, async () => {
  await cluster.mustWith(JSON.stringify(pod('denied')), ['apply', '-f', '-'])
  const lastTransitionTime = new Date(Math.floor(Date.now() / 1000) * 1000).toISOString().replace('.000', '')
  await setStatus(await requestOf('denied'), {
    conditions: [{ type: 'Denied', status: 'True', reason: 'UnsupportedKeyType', message: 'use RSA3072', lastTransitionTime }],
  })
  const events = () =>
    cluster.must(['get', 'events', '--field-selector=involvedObject.name=denied', '-o', 'jsonpath={range .items[*]}{.reason} {.message}{"\\n"}{end}'])
  await eventually('the event', 20_000, events, (text) =>
    /^Denied PodCertificateRequest .* was denied, reason="UnsupportedKeyType", message="use RSA3072"$/m.test(text),
  )
  assert.equal(await cluster.must(['get', 'pod', 'denied', '-o', 'jsonpath={.status.phase}']), 'Pending')
  assert.match(
    await cluster.must(['get', 'podcertificaterequests']),
    /^NAME +PODNAME +SERVICEACCOUNTNAME +NODENAME +SIGNERNAME +STATE +UNVERIFIEDUSERANNOTATIONS$/m,
  )
})
