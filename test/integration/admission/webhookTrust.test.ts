/** ADM-02, ADM-03: webhooks whose certificate has no names, and webhooks that are the server itself. */
import assert from 'node:assert/strict'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { ValidatingWebhook } from '#api/gen/types/admissionregistration.v1'
import type { AdmissionAttributes } from '#apiserver/admission/admission'
import { createAdmissionMetrics } from '#apiserver/admission/admissionMetrics'
import { callHook } from '#apiserver/admission/webhook/callHook'
import { type Hook, type HookDeps, hooksOf } from '#apiserver/admission/webhook/hook'
import { ObjectTexts } from '#apiserver/admission/webhook/review'
import { nodeCreation, nodeKind } from '#apiserver/admission/webhook/testAttributes'
import { createWebhookPool } from '#apiserver/webhooks/webhookClient'
import { seededRandom } from '#base/random'
import type { ApiRequest, Transport } from '#client/transport'
import { createPrometheusMetrics } from '#main/prometheus'
import { realClock } from '#testing/realClock'
import { openSsl } from '../../support/openssl.ts'

/** Asks a webhook about a node: its warnings, what was noted for the audit log, and the metrics. */
async function ask(clientConfig: ValidatingWebhook['clientConfig'], own?: HookDeps['own']) {
  const notes: Record<string, string> = {}
  const warnings: string[] = []
  const attributes: AdmissionAttributes = {
    ...nodeCreation,
    warn: (text) => void warnings.push(text),
    annotate: (key, value) => {
      notes[key] = value
    },
  }
  const webhook: ValidatingWebhook = { name: 'w', clientConfig, sideEffects: 'None', admissionReviewVersions: ['v1'] }
  const configuration = { apiVersion: 'v1', kind: 'ValidatingWebhookConfiguration', metadata: { name: 'c' }, webhooks: [webhook] }
  const pool = createWebhookPool()
  const [hook] = hooksOf(configuration, { resolve: () => assert.fail('no service is looked for'), pool: () => pool, own }) as [Hook]
  const metrics = createPrometheusMetrics()
  const objects = { object: undefined, oldObject: undefined }
  const call = { hook, invocation: { resource: nodeKind, kind: nodeKind }, attributes, objects, texts: new ObjectTexts(), mutating: false }
  const error = await callHook(call, { clock: realClock, random: seededRandom(1), metrics: createAdmissionMetrics(metrics) }).then(
    () => undefined,
    (thrown: Error) => thrown,
  )
  pool.destroy()
  const counted = ['missing_san', 'insecure_sha1'].map((what) => new RegExp(`^apiserver_webhooks_x509_${what}_total (\\d+)$`, 'm').exec(metrics.render())?.[1])
  return { error: error?.message, warnings, notes, counted }
}

const untaken = [
  {
    certificate: 'names it in its subject only',
    options: {},
    error: 'certificate relies on legacy Common Name field, use SANs instead',
    note: { 'missing-san.invalid-cert.kubernetes.io/localhost': 'relies on a legacy Common Name field instead of the SAN extension for subject validation' },
    counted: ['1', '0'],
  },
  {
    certificate: 'is signed over SHA-1',
    options: { names: 'DNS:localhost', digest: 'sha1' },
    error: 'certificate signed by unknown authority',
    note: { 'insecure-sha1.invalid-cert.kubernetes.io/localhost': 'uses an insecure SHA-1 signature' },
    counted: ['0', '1'],
  },
] as const
for (const { certificate, options, error: why, note, counted: want } of untaken) {
  test(`ADM-03 a webhook whose certificate ${certificate} is not believed, noted and counted`, async () => {
    const files = openSsl()
    const authority = files.authority('hooks')
    const { cert, key } = files.sign(authority, { subject: '/CN=localhost', usage: 'serverAuth', ...options })
    const server = createServer({ cert, key, ciphers: 'DEFAULT@SECLEVEL=0' }, () => assert.fail('nobody asks'))
    try {
      await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
      const { port } = server.address() as AddressInfo
      const caBundle = Buffer.from(authority.cert).toString('base64')
      const { error, notes, counted } = await ask({ url: `https://localhost:${port}/x`, caBundle })
      assert.ok(error?.endsWith(`tls: failed to verify certificate: x509: ${why}`), error)
      assert.deepEqual(notes, note)
      assert.deepEqual(counted, want)
    } finally {
      await new Promise((resolve) => server.close(resolve))
      files.remove()
    }
  })
}

test('ADM-03 a webhook that is the server itself is asked as the server, not over the wire', async () => {
  const asked: ApiRequest[] = []
  const own = {
    async request(request: ApiRequest) {
      asked.push(request)
      const { uid } = JSON.parse(String(request.body)).request
      return {
        status: 200,
        warnings: [],
        body: { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid, allowed: true, warnings: ['seen'] } },
      }
    },
  } as unknown as Transport
  const service = { namespace: 'default', name: 'kubernetes', path: '/apis/admission.example.com/v1/reviews' }
  const { error, warnings } = await ask({ service }, () => own)
  assert.deepEqual([error, warnings], [undefined, ['seen']])
  assert.deepEqual(
    asked.map(({ method, path, query }) => [method, path, query]),
    [['POST', '/apis/admission.example.com/v1/reviews', { timeout: '10s' }]],
  )
  assert.match((await ask({ service }, () => undefined)).error ?? '', /failed calling webhook "w": failed to call webhook: the server does not serve yet/)
})
