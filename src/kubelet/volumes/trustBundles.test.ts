import assert from 'node:assert/strict'
import { test } from 'node:test'
import { notFound } from '#api/machinery/status'
import type { ListOptions } from '#client/client'
import type { KubeletContext } from '../core/context.ts'
import { projectedTrustAnchors, trustAnchors } from './trustBundles.ts'

const pem = (body: string) => `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`
const bundles = [
  { metadata: { name: 'a' }, spec: { signerName: 'x.test/y', trustBundle: pem('QQ==') + pem('Qg==') } },
  { metadata: { name: 'b' }, spec: { signerName: 'x.test/y', trustBundle: pem('Qg==') } },
]

function contextWith(featureGates: Record<string, boolean>): { context: KubeletContext; asked: ListOptions[] } {
  const asked: ListOptions[] = []
  const resource = {
    get: async ({ name }: { name: string }) => {
      const found = bundles.find(({ metadata }) => metadata.name === name)
      if (!found) throw notFound({ group: 'certificates.k8s.io', resource: 'clustertrustbundles' }, name)
      return found
    },
    list: async (options: ListOptions) => {
      asked.push(options)
      return { items: options.fieldSelector === 'spec.signerName=x.test/y' ? bundles : [] }
    },
  }
  return { context: { client: { of: () => resource }, config: { featureGates } } as unknown as KubeletContext, asked }
}

const on = { ClusterTrustBundleProjection: true }

test('STO-03 trust anchors of several bundles are written once each, as PEM', () => {
  const long = 'A'.repeat(80)
  assert.equal(trustAnchors([pem('QQ=='), `text\n${pem(long)}`, pem('QQ==')]), pem(`${'A'.repeat(64)}\n${'A'.repeat(16)}`) + pem('QQ=='))
})

test('STO-03 a trust bundle is projected by name, or by signer and labels', async () => {
  const { context, asked } = contextWith(on)
  assert.equal(await projectedTrustAnchors(context, { name: 'b', path: 'p' }), pem('Qg=='))
  const labelSelector = { matchLabels: { live: 'yes' } }
  assert.equal(await projectedTrustAnchors(context, { signerName: 'x.test/y', labelSelector, path: 'p' }), pem('QQ==') + pem('Qg=='))
  assert.deepEqual(asked, [{ fieldSelector: 'spec.signerName=x.test/y', labelSelector: 'live=yes' }])
  await projectedTrustAnchors(context, { signerName: 'x.test/y', labelSelector: {}, path: 'p' })
  assert.deepEqual(asked[1], { fieldSelector: 'spec.signerName=x.test/y' })
})

test('STO-03 a trust bundle that is not there is an error unless it is optional; no selector selects nothing', async () => {
  const { context } = contextWith(on)
  await assert.rejects(projectedTrustAnchors(context, { name: 'none', path: 'p' }), /^Error: while getting ClusterTrustBundle: /)
  assert.equal(await projectedTrustAnchors(context, { name: 'none', optional: true, path: 'p' }), '')
  const nothing = { message: 'combination of signerName and labelSelector matched zero ClusterTrustBundles' }
  await assert.rejects(projectedTrustAnchors(context, { signerName: 'x.test/y', path: 'p' }), nothing)
  assert.equal(await projectedTrustAnchors(context, { signerName: 'other.test/z', labelSelector: {}, optional: true, path: 'p' }), '')
})

test('STO-03 a label selector of trust bundles that is too long for a request is an error, and nothing is asked', async () => {
  const { context, asked } = contextWith(on)
  const matchLabels = Object.fromEntries(Array.from({ length: 4000 }, (_, at) => [`example.com/label-${at}`, 'value']))
  const projected = projectedTrustAnchors(context, { signerName: 'x.test/y', labelSelector: { matchLabels }, path: 'p' })
  await assert.rejects(projected, /^Error: label selector length \(\d+\) is larger than 102400$/)
  assert.deepEqual(asked, [])
})

test('STO-03 trust bundles are off unless the feature gate is on', async () => {
  const { context } = contextWith({})
  await assert.rejects(projectedTrustAnchors(context, { name: 'b', path: 'p' }), /needs feature gate ClusterTrustBundleProjection$/)
})
