import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, ServiceAccount } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { secretFault } from './mountableSecrets.ts'

const account = (enforce: string) =>
  ({
    metadata: { name: 'sa', annotations: { 'kubernetes.io/enforce-mountable-secrets': enforce } },
    secrets: [{ name: 'mine' }],
    imagePullSecrets: [{ name: 'pull' }],
  }) as unknown as Frozen<ServiceAccount>
const pod = (spec: object) => ({ spec: { containers: [], ...spec } }) as unknown as Frozen<Pod>
const because = 'is not allowed because service account sa does not reference that secret'

const cases: readonly { readonly name: string; readonly spec: (secret: string) => object; readonly text: string }[] = [
  { name: 'volumes', spec: (secretName) => ({ volumes: [{ name: 'v', secret: { secretName } }] }), text: `volume with secret.secretName="other" ${because}` },
  {
    name: 'variables',
    spec: (name) => ({ initContainers: [{ name: 'c', env: [{ name: 'E', valueFrom: { secretKeyRef: { name } } }] }] }),
    text: `init container c with envVar E referencing secret.secretName="other" ${because}`,
  },
  {
    name: 'all variables of a secret',
    spec: (name) => ({ containers: [{ name: 'c', envFrom: [{ secretRef: { name } }] }] }),
    text: `container c with envFrom referencing secret.secretName="other" ${because}`,
  },
]
for (const { name, spec, text } of cases) {
  test(`AUN-08 secrets that an account does not name, in ${name}`, () => {
    assert.equal(secretFault(pod(spec('other')), account('true')), text)
    assert.equal(secretFault(pod(spec('mine')), account('true')), undefined)
    assert.equal(secretFault(pod(spec('other')), account('false')), undefined)
  })
}

test('AUN-08 pull secrets have to be the account’s', () => {
  const pulling = (name: string) => secretFault(pod({ imagePullSecrets: [{ name }] }), account('true'))
  assert.equal(pulling('pull'), undefined)
  assert.equal(pulling('mine'), 'imagePullSecrets[0].name="mine" is not allowed because service account sa does not reference that imagePullSecret')
})
