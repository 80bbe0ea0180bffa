/** ADM-07: mutating admission policies: what they make of an object, and how they fail. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refused } from '../../support/refused.ts'
import { configMap, configMaps, withCluster } from './cluster.ts'
import { dropPolicies, makePolicy, onConfigMaps, type PolicyTrial } from './policies.ts'

interface Case extends PolicyTrial {
  readonly name: string
  readonly data?: Record<string, string>
  /** What the object's data becomes. */
  readonly becomes?: Record<string, string>
  readonly refusal?: string
  readonly reason?: string
}

const applying = (expression: string) => ({ mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }] })
const patching = (expression: string) => ({ mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }] })
const withBinding = "policy 'p' with binding 'p-b' denied request: "

const cases: Case[] = [
  { name: 'apply configuration', spec: applying('Object{data: {"a": "1"}}'), data: { own: 'x' }, becomes: { own: 'x', a: '1' } },
  {
    name: 'JSON patch',
    spec: patching('[JSONPatch{op: "add", path: "/data/a", value: "1"}, JSONPatch{op: "remove", path: "/data/own"}]'),
    data: { own: 'x' },
    becomes: { a: '1' },
  },
  {
    name: 'a patch whose test fails does nothing',
    spec: patching('[JSONPatch{op: "test", path: "/data/own", value: "y"}, JSONPatch{op: "remove", path: "/data/own"}]'),
    data: { own: 'x' },
    becomes: { own: 'x' },
  },
  {
    name: 'mutations follow each other',
    spec: { mutations: [...applying('Object{data: {"n": "1"}}').mutations, ...applying('Object{data: {"n": object.data.n + "2"}}').mutations] },
    data: { own: 'x' },
    becomes: { own: 'x', n: '12' },
  },
  {
    name: 'variables and conditions',
    spec: {
      variables: [{ name: 'v', expression: "object.metadata.name + '!'" }],
      matchConditions: [{ name: 'c', expression: 'has(object.data.own)' }],
      ...applying('Object{data: {"v": variables.v}}'),
    },
    data: { own: 'x' },
    becomes: { own: 'x', v: 'x!' },
  },
  {
    name: 'a false condition',
    spec: { matchConditions: [{ name: 'c', expression: 'false' }], ...applying('Object{data: {"v": "1"}}') },
    data: { own: 'x' },
    becomes: { own: 'x' },
  },
  {
    name: 'params',
    spec: { paramKind: { apiVersion: 'v1', kind: 'ConfigMap' }, ...applying('Object{data: {"max": params.data.max}}') },
    binding: { paramRef: { name: 'limits', parameterNotFoundAction: 'Deny' } },
    data: { own: 'x' },
    becomes: { own: 'x', max: '3' },
  },
  {
    name: 'a field that is not there',
    spec: applying('Object{nope: "1"}'),
    refusal: `${withBinding}error applying patch: failed to convert patch object to typed object: .nope: field not declared in schema`,
    reason: 'Invalid',
  },
  {
    name: 'a type in the wrong place',
    spec: applying('Object{metadata: Object.spec{}}'),
    refusal: `${withBinding}type mismatch: unexpected type name "Object.spec", expected "Object.metadata", which matches field name path from root Object type`,
    reason: 'Invalid',
  },
  {
    name: 'a patch that does not apply',
    spec: patching('[JSONPatch{op: "remove", path: "/data/none"}]'),
    data: { own: 'x' },
    refusal: `${withBinding}JSON Patch: Unable to remove nonexistent key: none: missing value`,
    reason: 'Invalid',
  },
  { name: 'a failure that is ignored', spec: { failurePolicy: 'Ignore', ...applying('Object{nope: "1"}') }, data: { own: 'x' }, becomes: { own: 'x' } },
  {
    name: 'an error of evaluation',
    spec: applying('Object{data: {"a": object.data.none}}'),
    data: { own: 'x' },
    refusal: `${withBinding}expression 'Object{data: {"a": object.data.none}}' resulted in error: no such key: none`,
    reason: 'Invalid',
  },
  {
    name: 'an unknown kind of params',
    spec: { paramKind: { apiVersion: 'example.com/v1', kind: 'Nothing' }, ...applying('Object{}') },
    refusal: `policy "p" denied request: failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Nothing'`,
    reason: 'Forbidden',
  },
]

test('ADM-07: mutating policies', () =>
  withCluster(async (cluster) => {
    await cluster.request('POST', configMaps(), configMap('limits', { max: '3' }))
    const wrong: string[] = []
    for (const { name, data = {}, becomes, refusal = '', reason, ...trial } of cases) {
      try {
        await makePolicy(cluster, 'Mutating', 'p', { ...trial, spec: { reinvocationPolicy: 'Never', ...trial.spec } })
        const made = cluster.request('POST', configMaps(), configMap('x', data))
        if (becomes) assert.deepEqual((await made).data, becomes)
        else {
          const status = await refused(made)
          assert.ok(status.message.startsWith(refusal), status.message)
          assert.deepEqual([status.reason, status.code], [reason, 403])
        }
      } catch (error) {
        wrong.push(`${name}: ${(error as Error).message}`)
      }
      await dropPolicies(cluster, 'Mutating')
      await cluster.request('DELETE', configMaps('default', 'x')).catch(() => undefined)
    }
    assert.deepEqual(wrong, [])
  }))

test('ADM-07: lists with keys are merged, lists without are not touched', () =>
  withCluster(async (cluster) => {
    const matchConstraints = { ...onConfigMaps, resourceRules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }] }
    const pods = '/api/v1/namespaces/default/pods'
    const pod = (name: string) => ({ metadata: { name }, spec: { containers: [{ name: 'a', image: 'a' }] } })
    const sidecar = 'Object{spec: Object.spec{containers: [Object.spec.containers{name: "side", image: "car"}]}}'
    await makePolicy(cluster, 'Mutating', 'sidecar', { spec: { matchConstraints, ...applying(sidecar) } })
    const made = await cluster.request('POST', pods, pod('one'))
    assert.deepEqual(
      made.spec.containers.map(({ name, image, imagePullPolicy }: Record<string, string>) => [name, image, imagePullPolicy]),
      [
        ['a', 'a', 'Always'],
        ['side', 'car', 'Always'],
      ],
    )
    await dropPolicies(cluster, 'Mutating')
    const command = 'Object{spec: Object.spec{containers: [Object.spec.containers{name: "a", command: ["x"]}]}}'
    await makePolicy(cluster, 'Mutating', 'command', { spec: { matchConstraints, ...applying(command) } })
    const status = await refused(cluster.request('POST', pods, pod('two')))
    assert.ok(status.message.includes('may not mutate atomic arrays, maps or structs: .spec.containers[0].command'), status.message)
  }))
