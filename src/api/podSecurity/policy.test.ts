import assert from 'node:assert/strict'
import { test } from 'node:test'
import { levelVersionText, modes, type Policy, policyToEvaluate, privilegedLatest } from './policy.ts'

const defaults: Policy = { enforce: privilegedLatest, audit: privilegedLatest, warn: privilegedLatest }
const prefix = 'pod-security.kubernetes.io/'

const cases: readonly { readonly name: string; readonly labels: Record<string, string>; readonly policy: string; readonly faults?: readonly string[] }[] = [
  { name: 'no labels', labels: {}, policy: 'privileged:latest privileged:latest privileged:latest' },
  {
    name: 'what is enforced is warned of',
    labels: { enforce: 'baseline', 'enforce-version': 'v1.30' },
    policy: 'baseline:v1.30 privileged:latest baseline:v1.30',
  },
  { name: 'unless said otherwise', labels: { enforce: 'restricted', warn: 'privileged' }, policy: 'restricted:latest privileged:latest privileged:latest' },
  {
    name: 'the version of warnings stays',
    labels: { enforce: 'restricted', 'warn-version': 'v1.2' },
    policy: 'restricted:latest privileged:latest restricted:v1.2',
  },
  {
    name: 'what cannot be read is enforced strictly, and neither audited nor warned of',
    labels: { enforce: 'x', 'enforce-version': 'v1.01', audit: 'y', warn: '' },
    policy: 'restricted:latest privileged:latest privileged:latest',
    faults: [
      'metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "x": must be one of privileged, baseline, restricted',
      'metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: "v1.01": must be "latest" or "v1.x"',
      'metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: "y": must be one of privileged, baseline, restricted',
      'metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: "": must be one of privileged, baseline, restricted',
    ],
  },
]
for (const { name, labels, policy, faults = [] } of cases) {
  test(`labels: ${name}`, () => {
    const prefixed = Object.fromEntries(Object.entries(labels).map(([key, value]) => [`${prefix}${key}`, value]))
    const found = policyToEvaluate(prefixed, defaults)
    assert.equal(modes.map((mode) => levelVersionText(found.policy[mode])).join(' '), policy)
    assert.deepEqual(
      found.faults.map(({ field, body }) => `${field}: ${body}`),
      faults,
    )
  })
}
