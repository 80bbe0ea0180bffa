/** ADM-06: what type checking finds stands in a policy's status, under the rights of the controller's own service account. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ValidatingAdmissionPolicySpec } from '#api/gen/types/admissionregistration.v1'
import { validatingAdmissionPolicies } from '#client/builtIn'
import { definition, establish, version } from '../crd/support.ts'
import { eventually, startTestCluster } from './cluster.ts'

const about = (group: string, resource: string): Pick<ValidatingAdmissionPolicySpec, 'matchConstraints'> => ({
  matchConstraints: { resourceRules: [{ apiGroups: [group], apiVersions: ['v1'], operations: ['CREATE'], resources: [resource] }] },
})

test('ADM-06: expressions that do not fit the kinds are warned of, built-in or custom', async () => {
  const cluster = await startTestCluster()
  try {
    const policies = cluster.client.of(validatingAdmissionPolicies)
    await establish(
      cluster.client,
      definition('widgets', 'Widget', [version('v1', { type: 'object', properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } } })]),
    )
    const warningsOf = async (name: string, spec: ValidatingAdmissionPolicySpec) => {
      await policies.create({ metadata: { name }, spec })
      const { status } = await eventually(async () => {
        const found = await policies.get({ name })
        return found.status?.observedGeneration === found.metadata.generation && found
      })
      return status.typeChecking?.expressionWarnings ?? []
    }
    const good = { expression: 'object.spec.replicas > 1', messageExpression: "'replicas: ' + string(object.spec.replicas)" }
    const bad = { expression: 'object.spec.replicsa > 1', messageExpression: 'string(object.spec.replicas)' }
    assert.deepEqual(await warningsOf('good', { ...about('apps', 'deployments'), validations: [good] }), [])
    assert.deepEqual(await warningsOf('bad', { ...about('apps', 'deployments'), validations: [good, bad] }), [
      {
        fieldRef: 'spec.validations[1].expression',
        warning: "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replicsa'\n | object.spec.replicsa > 1\n | ...........^\n",
      },
    ])
    const custom = await warningsOf('custom', { ...about('example.com', 'widgets'), validations: [{ expression: "object.spec.size == 'large'" }] })
    assert.deepEqual(
      custom.map(({ fieldRef, warning }) => [fieldRef, warning.split('\n')[0]]),
      [
        [
          'spec.validations[0].expression',
          "example.com/v1, Kind=Widget: ERROR: <input>:1:18: found no matching overload for '_==_' applied to '(int, string)'",
        ],
      ],
    )
    assert.deepEqual(cluster.complaints, [])
  } finally {
    await cluster.close()
  }
})
