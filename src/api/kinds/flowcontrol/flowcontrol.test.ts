import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowSchema, PriorityLevelConfiguration } from '#api/gen/types/flowcontrol.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { changed, kindRules } from '#testing/kindRules'
import { mandatoryFlowSchemas, mandatoryPriorityLevels, suggestedFlowSchemas, suggestedPriorityLevels } from './bootstrapObjects.ts'
import { flowSchema } from './flowSchema.ts'
import { priorityLevelConfiguration } from './priorityLevelConfiguration.ts'

const apiVersion = 'flowcontrol.apiserver.k8s.io/v1'
const goodSchema: FlowSchema = {
  apiVersion,
  kind: 'FlowSchema',
  metadata: { name: 'mine' },
  spec: {
    priorityLevelConfiguration: { name: 'global-default' },
    matchingPrecedence: 500,
    rules: [
      {
        subjects: [{ kind: 'User', user: { name: 'alice' } }],
        resourceRules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'], namespaces: ['default'] }],
        nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz'] }],
      },
    ],
  },
  status: {},
}
const onSchema = kindRules('EXP-04', flowSchema, goodSchema)
const rule = 'spec.rules[0]'
onSchema.defaults('the precedence', { 'spec.matchingPrecedence': undefined }, { 'spec.matchingPrecedence': 1000 })
onSchema.create([
  ['a good one', {}, []],
  ['a negative precedence', { 'spec.matchingPrecedence': -1 }, ['spec.matchingPrecedence: Invalid value: -1: must be a positive value']],
  ['a high precedence', { 'spec.matchingPrecedence': 10001 }, ['spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000']],
  [
    'the first precedence',
    { 'spec.matchingPrecedence': 1 },
    ["spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1"],
  ],
  [
    'an unknown distinguisher',
    { 'spec.distinguisherMethod': { type: 'ByMoon' } },
    ['spec.distinguisherMethod.type: Unsupported value: {"type":"ByMoon"}: supported values: "ByNamespace", "ByUser"'],
  ],
  ['no level', { 'spec.priorityLevelConfiguration.name': '' }, ['spec.priorityLevelConfiguration.name: Required value: must reference a priority level']],
  ['no subjects', { 'spec.rules.0.subjects': [] }, [`${rule}.subjects: Required value: subjects must contain at least one value`]],
  [
    'no rules',
    { 'spec.rules.0.resourceRules': [], 'spec.rules.0.nonResourceRules': [] },
    [`${rule}: Required value: at least one of resourceRules and nonResourceRules has to be non-empty`],
  ],
  [
    'a subject of another kind',
    { 'spec.rules.0.subjects.0.kind': 'Group' },
    [
      `${rule}.subjects[0].group: Required value: group is required when subject kind is 'Group'`,
      `${rule}.subjects[0].user: Forbidden: user is forbidden when subject kind is not 'User'`,
    ],
  ],
  [
    'an unknown subject',
    { 'spec.rules.0.subjects.0': { kind: 'Robot' } },
    [`${rule}.subjects[0].kind: Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User"`],
  ],
  [
    'an account without a namespace',
    { 'spec.rules.0.subjects.0': { kind: 'ServiceAccount', serviceAccount: { name: '*', namespace: '' } } },
    [`${rule}.subjects[0].serviceAccount.namespace: Required value: must specify namespace for service account`],
  ],
  [
    'a wildcard next to a named verb',
    { 'spec.rules.0.resourceRules.0.verbs': ['*', 'get'] },
    [`${rule}.resourceRules[0].verbs: Invalid value: ["*","get"]: if '*' is present, must not specify other verbs`],
  ],
  [
    'no group',
    { 'spec.rules.0.resourceRules.0.apiGroups': [] },
    [`${rule}.resourceRules[0].apiGroups: Required value: resource rules must supply at least one api group`],
  ],
  [
    'neither namespaces nor the cluster',
    { 'spec.rules.0.resourceRules.0.namespaces': [] },
    [`${rule}.resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace`],
  ],
  ...(
    [
      ['', 'must not be empty'],
      ['healthz', 'must start with slash'],
      ['/a b', 'must not contain white-space'],
      ['/a//b', 'must not contain double slash'],
      ['/a*', 'wildcard can only do suffix matching'],
    ] as const
  ).map(
    ([url, why]) =>
      [
        `the URL ${url}`,
        { 'spec.rules.0.nonResourceRules.0.nonResourceURLs': [url] },
        [`${rule}.nonResourceRules[0].nonResourceURLs[0]: Invalid value: "${url}": ${why}`],
      ] as const,
  ),
])
const [exemptSchema, catchAllSchema] = mandatoryFlowSchemas
onSchema.create([
  [
    'a namespace of no possible name',
    { 'spec.rules.0.resourceRules.0.namespaces': ['A'] },
    [
      `${rule}.resourceRules[0].namespaces[0]: Invalid value: "A": each member of this list must be '*' or a DNS-1123 label; a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
    ],
  ],
  ['the mandatory exempt one', { metadata: exemptSchema?.metadata, spec: exemptSchema?.spec }, []],
  ['the mandatory last one', { metadata: catchAllSchema?.metadata, spec: catchAllSchema?.spec }, []],
])
test('EXP-04 FlowSchema: the spec of a mandatory one is fixed', () => {
  const obj = changed(catchAllSchema as FlowSchema, { 'spec.matchingPrecedence': 9999 })
  const errors = flowSchema.validate?.({ obj, path: FieldPath.of(), context: {} as never }) ?? []
  assert.deepEqual(
    errors.map(({ field, body }) => [field, body.replace(/^.*}: /, '')]),
    [['spec', "spec of 'catch-all' must equal the fixed value"]],
  )
})
test('EXP-04 the suggested objects satisfy their own rules and need no defaults', () => {
  for (const [strategy, objects] of [
    [flowSchema, [...mandatoryFlowSchemas, ...suggestedFlowSchemas]],
    [priorityLevelConfiguration, [...mandatoryPriorityLevels, ...suggestedPriorityLevels]],
  ] as const)
    for (const object of objects) {
      const copy = structuredClone(object) as never
      strategy.defaults?.(copy, 'v1')
      assert.deepEqual(copy, object)
      assert.deepEqual(strategy.validate?.({ obj: copy, path: FieldPath.of(), context: {} as never }), [])
    }
})
onSchema.subresource('status', [
  ['a type twice', { 'status.conditions': [{ type: 'Dangling' }, { type: 'Dangling' }] }, ['status.conditions[1].type: Duplicate value: "Dangling"']],
  ['no type', { 'status.conditions': [{ type: '' }] }, ['status.conditions[0].type: Required value: must not be empty']],
])

const goodLevel: PriorityLevelConfiguration = {
  apiVersion,
  kind: 'PriorityLevelConfiguration',
  metadata: { name: 'mine' },
  spec: { type: 'Limited', limited: { limitResponse: { type: 'Queue', queuing: {} } } },
  status: {},
}
const [exemptLevel, catchAllLevel] = mandatoryPriorityLevels
test('EXP-04 a mandatory PriorityLevelConfiguration refuses changes, except of the share of the exempt level', () => {
  const texts = (object: PriorityLevelConfiguration | undefined, changes: Record<string, unknown>) =>
    (
      priorityLevelConfiguration.validate?.({ obj: changed(object as PriorityLevelConfiguration, changes), path: FieldPath.of(), context: {} as never }) ?? []
    ).map(({ field, body }) => `${field}: ${body.replace(/^.*}: /, '')}`)
  assert.deepEqual(texts(exemptLevel, { 'spec.exempt.nominalConcurrencyShares': 7 }), [])
  assert.deepEqual(texts(exemptLevel, { 'spec.limited': {} }), [
    'spec.limited: Forbidden: must be nil if the type is not Limited',
    "spec: spec of 'exempt' except the 'spec.exempt' field must equal the fixed value",
  ])
  assert.deepEqual(texts(catchAllLevel, { 'spec.limited.lendablePercent': 1 }), ["spec: spec of 'catch-all' must equal the fixed value"])
})
const onLevel = kindRules('EXP-04', priorityLevelConfiguration, goodLevel)
const limited = 'spec.limited'
const queuing = `${limited}.limitResponse.queuing`
onLevel.defaults(
  'shares and queues',
  {},
  {
    [`${limited}.nominalConcurrencyShares`]: 30,
    [`${limited}.lendablePercent`]: 0,
    [queuing]: { queues: 64, handSize: 8, queueLengthLimit: 50 },
  },
)
onLevel.create([
  ['a good one', {}, []],
  [
    'an exempt one of another name',
    { spec: { type: 'Exempt' } },
    ["spec.type: Invalid value: \"Exempt\": type must be 'Exempt' if and only if the name is 'exempt'"],
  ],
  ['the exempt one', { 'metadata.name': 'exempt', spec: { type: 'Exempt', exempt: {} } }, []],
  ['no limits', { 'spec.limited': undefined }, ['spec.limited: Required value: must not be empty when type is Limited']],
  ['both kinds', { 'spec.exempt': {} }, ['spec.exempt: Forbidden: must be nil if the type is Limited']],
  ['an unknown type', { 'spec.type': 'Some' }, ['spec.type: Unsupported value: "Some": supported values: "Exempt", "Limited"']],
  [
    'a negative share',
    { [`${limited}.nominalConcurrencyShares`]: -1 },
    [`${limited}.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer`],
  ],
  ['lending too much', { [`${limited}.lendablePercent`]: 101 }, [`${limited}.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive`]],
  [
    'borrowing less than nothing',
    { [`${limited}.borrowingLimitPercent`]: -1 },
    [`${limited}.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer`],
  ],
  [
    'queues of a level that rejects',
    { [`${limited}.limitResponse.type`]: 'Reject' },
    [`${queuing}: Forbidden: must be nil if limited.limitResponse.type is not Limited`],
  ],
  ['a level that queues without queues', { [queuing]: undefined }, [`${queuing}: Required value: must not be empty if limited.limitResponse.type is Limited`]],
  ['a hand larger than the deck', { [`${queuing}.handSize`]: 65 }, [`${queuing}.handSize: Invalid value: 65: should not be greater than queues (64)`]],
  [
    'too much to deal',
    { [`${queuing}.handSize`]: 20 },
    [`${queuing}.handSize: Invalid value: 20: required entropy bits of deckSize 64 and handSize 20 should not be greater than 60`],
  ],
  [
    'too many queues',
    { [`${queuing}.queues`]: 10_000_001, [`${queuing}.handSize`]: 1 },
    [`${queuing}.queues: Invalid value: 10000001: must not be greater than 10000000`],
  ],
])
