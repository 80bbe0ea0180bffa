/** What the views of a node's network say when a program of the node fails. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeletView } from '../core/kubeletView.ts'
import { networkProbesView } from './networkProbes.ts'
import { nodeRoutesView } from './nodeRoutes.ts'
import { serviceRulesView } from './serviceRules.ts'

const fail = async () => {
  throw new Error(`ip -json route: exit 1: ${'x'.repeat(1000)}`)
}
const view = {
  config: { clusterDNS: [], clusterDomain: 'cluster.local' },
  context: () => ({ nodeNetwork: { serviceRules: fail, routes: fail, probe: fail } }),
} as unknown as KubeletView

for (const [shown, query] of [
  [serviceRulesView, 'service=d/web'],
  [nodeRoutesView, ''],
  [networkProbesView, 'resolve=A/web'],
] as const) {
  test(`KUB-17 the view ${shown.resource} gives a short reason when a program of the node fails`, async () => {
    const { note = '' } = (await shown.compute(view, new URLSearchParams(query))) as { readonly note?: string }
    assert.match(note, /^ip -json route: exit 1: x/)
    assert.equal(note.length, 256)
  })
}
