import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CustomResourceDefinition, CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { seededRandom } from '#base/random'
import { approvalOf } from './approval.ts'
import { customResourceDefinition as kind } from './customResourceDefinition.ts'
import { resolveFieldPath } from './fieldPaths.ts'

type Spec = Partial<CustomResourceDefinitionSpec>

const context = { nowMs: 0, random: seededRandom(1) }
const path = FieldPath.of()
const simple: JSONSchemaProps = { type: 'object', properties: { spec: { type: 'object' } } }

const version = (schema: JSONSchemaProps | undefined, more: Partial<CustomResourceDefinitionVersion> = {}): CustomResourceDefinitionVersion => ({
  name: 'v1',
  served: true,
  storage: true,
  ...(schema ? { schema: { openAPIV3Schema: schema } } : {}),
  ...more,
})

function definition(spec: Spec = {}, metadata: object = {}): CustomResourceDefinition {
  const made = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'foos.example.com', ...metadata },
    spec: { group: 'example.com', scope: 'Namespaced', names: { plural: 'foos', kind: 'Foo' }, versions: [version(simple)], ...spec },
    status: {},
  } as CustomResourceDefinition
  kind.defaults?.(made, 'v1')
  return made
}

const textsOf = (errors: readonly { field: string; body: string }[]) => errors.map(({ field, body }) => `${field}: ${body}`)
const faults = (obj: CustomResourceDefinition) => textsOf(kind.validate?.({ obj, path, context }) ?? [])
const updateFaults = (obj: CustomResourceDefinition, old: CustomResourceDefinition) =>
  textsOf(kind.validateUpdate?.({ obj, old: old as Frozen<CustomResourceDefinition>, path, context }) ?? [])
const withSpec = (spec: JSONSchemaProps): JSONSchemaProps => ({ type: 'object', properties: { spec } })

test('CRD-01 defaults: names, conversion, the stored version', () => {
  const { spec, status } = definition()
  assert.deepEqual(spec.names, { plural: 'foos', kind: 'Foo', singular: 'foo', listKind: 'FooList' })
  assert.deepEqual([spec.conversion, status.storedVersions], [{ strategy: 'None' }, ['v1']])
  assert.deepEqual(faults(definition()), [])
})

const shared = 'spec.validation.openAPIV3Schema'
const cases: readonly (readonly [string, Spec, readonly string[]])[] = [
  [
    'a group without a dot',
    { group: 'example', names: { plural: 'foos', kind: 'Foo' } },
    [
      'metadata.name: Invalid value: "foos.example.com": must be spec.names.plural+"."+spec.group',
      'spec.group: Invalid value: "example": should be a domain with at least one dot',
    ],
  ],
  ['no scope', { scope: '' }, ['spec.scope: Required value']],
  ['an unknown scope', { scope: 'Galaxy' }, ['spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"']],
  ['no schema', { versions: [version(undefined)] }, ['spec.versions[0].schema.openAPIV3Schema: Required value']],
  [
    'two storage versions',
    { versions: [version(simple), version(simple, { name: 'v2' })] },
    [
      `spec.versions: Invalid value: ${JSON.stringify([version(simple), version(simple, { name: 'v2' })])}: must have exactly one version marked as storage version`,
    ],
  ],
  [
    'a short name with capitals',
    { names: { plural: 'foos', kind: 'Foo', shortNames: ['F'] } },
    [
      `spec.names.shortNames[0]: Invalid value: "F": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
    ],
  ],
  [
    'a list kind like the kind',
    { names: { plural: 'foos', kind: 'Foo', listKind: 'Foo' } },
    ['spec.names.listKind: Invalid value: "Foo": kind and listKind may not be the same'],
  ],
  [
    'a field without a type',
    { versions: [version(withSpec({}))] },
    [`${shared}.properties[spec].type: Required value: must not be empty for specified object fields`],
  ],
  ['a root that is no object', { versions: [version({ type: 'string' })] }, [`${shared}.type: Invalid value: "string": must be object at the root`]],
  [
    'logic at the root about a field that is not specified',
    { versions: [version({ ...simple, anyOf: [{ properties: { spec: { required: ['a'] }, a: { minimum: 1 } } }] })] },
    [`${shared}.properties[a]: Required value: because it is defined in ${shared}.anyOf[0].properties[a]`],
  ],
  [
    'types inside of logic',
    { versions: [version(withSpec({ type: 'object', properties: { a: { type: 'string' } }, not: { properties: { a: { type: 'string' } } } }))] },
    [`${shared}.properties[spec].not.properties[a].type: Forbidden: must be empty to be structural`],
  ],
  [
    'restricted metadata',
    { versions: [version({ type: 'object', properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } } })] },
    [`${shared}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified`],
  ],
  [
    'unique items',
    { versions: [version(withSpec({ type: 'array', uniqueItems: true, items: { type: 'string' } }))] },
    [`${shared}.properties[spec].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`],
  ],
  [
    'a list of maps without keys',
    { versions: [version(withSpec({ type: 'array', 'x-kubernetes-list-type': 'map', items: { type: 'object', properties: {} } }))] },
    [`${shared}.properties[spec].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`],
  ],
  [
    'a key that may be absent',
    {
      versions: [
        version(
          withSpec({
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['a'],
            items: { type: 'object', properties: { a: { type: 'string' } } },
          }),
        ),
      ],
    },
    [
      `${shared}.properties[spec].items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
    ],
  ],
  [
    'a default that does not fit',
    { versions: [version(withSpec({ type: 'object', properties: { a: { type: 'integer', default: 'x' } } }))] },
    [`${shared}.properties[spec].properties[a].default: Invalid value: "string":  in body must be of type integer: "string"`],
  ],
  [
    'a default with unknown fields',
    { versions: [version(withSpec({ type: 'object', default: { b: 1 }, properties: { a: { type: 'integer' } } }))] },
    [`${shared}.properties[spec].default: Invalid value: {"b":1}: must not have unknown fields`],
  ],
  [
    'a default in the metadata',
    { versions: [version({ type: 'object', properties: { metadata: { type: 'object', properties: { name: { type: 'string', default: 'x' } } } } })] },
    [`${shared}.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata`],
  ],
  [
    'a pattern that is none',
    { versions: [version(withSpec({ type: 'string', pattern: '(' }))] },
    [`${shared}.properties[spec].pattern: Invalid value: "(": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): \`(\``],
  ],
  ['a reference', { versions: [version(withSpec({ type: 'object', $ref: '#/x' }))] }, [`${shared}.properties[spec].$ref: Forbidden: $ref is not supported`]],
  [
    'subresources of one version alone',
    {
      versions: [
        version(simple, { subresources: { scale: { specReplicasPath: 'x', statusReplicasPath: '.spec.x' } } }),
        version(simple, { name: 'v2', storage: false }),
      ],
    },
    [
      'spec.versions[0].subresources.scale.specReplicasPath: Invalid value: "x": must be a simple json path starting with .',
      'spec.versions[0].subresources.scale.statusReplicasPath: Invalid value: ".spec.x": should be a json path under .status',
    ],
  ],
  [
    'bad columns',
    { versions: [version(simple, { additionalPrinterColumns: [{ name: '', type: 'text', jsonPath: 'x' }] })] },
    [
      'spec.additionalPrinterColumns[0].name: Required value',
      'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string',
      'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "x": must be a simple json path starting with .',
    ],
  ],
  [
    'bad selectable fields',
    {
      versions: [
        version(withSpec({ type: 'object', properties: { a: { type: 'object' } } }), {
          selectableFields: [{ jsonPath: '.spec.b' }, { jsonPath: '.spec.a' }, { jsonPath: '' }],
        }),
      ],
    },
    [
      'spec.selectableFields[0].jsonPath: Invalid value: ".spec.b": is an invalid path: does not refer to a valid field',
      'spec.selectableFields[1].jsonPath: Invalid value: ".spec.a": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.',
      'spec.selectableFields[2].jsonPath: Required value',
    ],
  ],
  [
    'a warning of what is not deprecated',
    { versions: [version(simple, { deprecationWarning: 'old' })] },
    ['spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions'],
  ],
  [
    'a webhook without an address',
    { conversion: { strategy: 'Webhook' } },
    [
      'spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook',
      'spec.conversion.conversionReviewVersions: Required value',
    ],
  ],
  [
    'a webhook that speaks something else over something else',
    { conversion: { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v9', 'v9'], clientConfig: { url: 'http://u@h/x?a#b' } } } },
    [
      `spec.conversion.webhookClientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`,
      'spec.conversion.webhookClientConfig.url: Invalid value: "u": user information is not permitted in the URL',
      'spec.conversion.webhookClientConfig.url: Invalid value: "b": fragments are not permitted in the URL',
      'spec.conversion.webhookClientConfig.url: Invalid value: "a": query parameters are not permitted in the URL',
      'spec.conversion.conversionReviewVersions[1]: Invalid value: "v9": duplicate version',
      'spec.conversion.conversionReviewVersions: Invalid value: ["v9","v9"]: must include at least one of v1, v1beta1',
    ],
  ],
  [
    'an unused webhook',
    { conversion: { strategy: 'None', webhook: { conversionReviewVersions: ['v1'] } } },
    ['spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook'],
  ],
  [
    'preserveUnknownFields that an older version stored',
    { preserveUnknownFields: true },
    [
      'spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
    ],
  ],
]
for (const [what, spec, want] of cases) test(`CRD-01 refused: ${what}`, () => assert.deepEqual(faults(definition(spec)), want))

test('CRD-01 versions with schemas of their own are named by their place', () => {
  const versions = [version(withSpec({})), version(simple, { name: 'v2', storage: false })]
  assert.deepEqual(faults(definition({ versions })), [
    'spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields',
  ])
})

test('CRD-01 what an old definition does already is not held against it', () => {
  const set: JSONSchemaProps = { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'object', properties: {} } }
  const old = definition({ versions: [version(withSpec(set))] })
  assert.equal(faults(old).length, 1)
  assert.deepEqual(updateFaults(structuredClone(old), old), [])
})

test('CRD-01 what may not change: group and plural ever, scope and kind once established', () => {
  const old = definition()
  const changed = definition({ scope: 'Cluster', names: { plural: 'foos', kind: 'Bar' } })
  assert.deepEqual(updateFaults(changed, old), [])
  old.status.conditions = [{ type: 'Established', status: 'True' }]
  assert.deepEqual(updateFaults(changed, old), [
    'spec.scope: Invalid value: "Cluster": field is immutable',
    'spec.names.kind: Invalid value: "Bar": field is immutable',
  ])
  assert.deepEqual(updateFaults(definition({ names: { plural: 'bars', kind: 'Foo' } }), definition()), [
    'spec.names.plural: Invalid value: "bars": field is immutable',
  ])
})

test('CRD-01 a definition in a group of Kubernetes needs an approval or an unapproved annotation', () => {
  const own = (annotation?: string) =>
    definition(
      { group: 'x.k8s.io' },
      { name: 'foos.x.k8s.io', ...(annotation === undefined ? {} : { annotations: { 'api-approved.kubernetes.io': annotation } }) },
    )
  assert.deepEqual(faults(own()), [
    'metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
  ])
  assert.deepEqual([faults(own('https://github.com/x')), faults(own('unapproved, testing'))], [[], []])
  assert.equal(faults(own('yes')).length, 1)
  assert.deepEqual(updateFaults(own(), own()), [])
  assert.equal(approvalOf({ 'api-approved.kubernetes.io': 'https://x/y' }).reason, 'approved in https://x/y')
})

test('CRD-01 a definition warns once of each unchecked format and of sets of objects', () => {
  const props = withSpec({
    type: 'object',
    properties: {
      a: { type: 'string', format: 'odd' },
      b: { type: 'integer', format: 'int32' },
      c: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'object', 'x-kubernetes-map-type': 'atomic' } },
    },
  })
  const obj = definition({ versions: [version(props)] })
  const warnings = kind.warnings?.({ obj, path, context })
  assert.deepEqual(warnings, [
    'unrecognized format "odd"',
    'x-kubernetes-list-type: set for items of type "object" is not supported by server-side apply or CEL validation rules',
  ])
  assert.deepEqual(kind.warnings?.({ obj, path, context }, obj as Frozen<CustomResourceDefinition>), [])
})

test('CRD-06 a deletion begins with the finalizer and the condition', () => {
  const obj = definition()
  kind.prepareForDelete?.(obj, 0)
  assert.deepEqual(obj.metadata.finalizers, ['customresourcecleanup.apiextensions.k8s.io'])
  assert.deepEqual(
    obj.status.conditions?.map(({ type, status, reason }) => [type, status, reason]),
    [['Terminating', 'True', 'InstanceDeletionPending']],
  )
})

const props: JSONSchemaProps = {
  type: 'object',
  properties: { a: { type: 'object', properties: { 'b.c': { type: 'string' } } }, m: { type: 'object', additionalProperties: { type: 'string' } } },
}
const paths: readonly (readonly [string, string | undefined])[] = [
  ['.a', 'a'],
  [".a['b.c']", 'a.b.c'],
  [".m['k']", 'm[k]'],
  ['.m.k', 'm[k]'],
  ['a', undefined],
  ['.x', undefined],
  ['.a[0]', undefined],
  ['.a.', undefined],
]
for (const [text, want] of paths) {
  test(`CRD-02 the path ${text}`, () => {
    const found = resolveFieldPath(text, props, { arrays: true })
    assert.equal(found.ok ? found.path.toString() : undefined, want)
  })
}
