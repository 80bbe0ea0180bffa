import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '#api/machinery/status'
import { accessReviews } from './accessReviews.ts'

const reviews = accessReviews([{ name: 'test', authorize: () => ({ decision: 'allow', reason: 'because' }) }])
const user = { name: 'alice', groups: [] }

async function ask(resource: string, spec: object, namespace = ''): Promise<unknown> {
  const review = reviews.find((one) => one.resource === resource)
  try {
    const answer = await review?.create?.({
      object: { apiVersion: 'authorization.k8s.io/v1', kind: 'X', metadata: {}, spec } as never,
      user,
      namespace,
    } as never)
    return (answer as { status?: unknown } | undefined)?.status
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    return error.details?.causes?.map(({ field, message }) => `${field}: ${message}`) ?? error.message
  }
}

const pods = { verb: 'get', resource: 'pods' }
const selector = 'spec.resourceAttributes.fieldSelector'
const labels = 'spec.resourceAttributes.labelSelector'
const cases: readonly [name: string, resource: string, spec: object, want: unknown, namespace?: string][] = [
  ['an answer', 'subjectaccessreviews', { user: 'bob', resourceAttributes: pods }, { allowed: true, reason: 'because' }],
  ['about oneself', 'selfsubjectaccessreviews', { nonResourceAttributes: { path: '/', verb: 'get' } }, { allowed: true, reason: 'because' }],
  [
    'a review without a user and without attributes',
    'subjectaccessreviews',
    {},
    [
      'spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
      'spec.user: Invalid value: "": at least one of user or group must be specified',
    ],
  ],
  [
    'both kinds asked',
    'selfsubjectaccessreviews',
    { resourceAttributes: pods, nonResourceAttributes: { path: '/' } },
    ['spec.nonResourceAttributes: Invalid value: {"path":"/"}: cannot be specified in combination with resourceAttributes'],
  ],
  [
    'an empty selector',
    'selfsubjectaccessreviews',
    { resourceAttributes: { ...pods, labelSelector: {} } },
    [`${labels}.requirements: Required value: when ${labels} is specified, requirements or rawSelector is required`],
  ],
  [
    'a selector in both forms',
    'selfsubjectaccessreviews',
    { resourceAttributes: { ...pods, fieldSelector: { rawSelector: 'a=b', requirements: [{ key: 'a', operator: 'Exists' }] } } },
    [`${selector}.rawSelector: Invalid value: "a=b": may not specified at the same time as requirements`],
  ],
  [
    'requirements without values and keys',
    'selfsubjectaccessreviews',
    {
      resourceAttributes: {
        ...pods,
        fieldSelector: {
          requirements: [
            { key: 'a', operator: 'In' },
            { key: '', operator: 'Exists', values: ['x'] },
            { key: 'c', operator: 'Like' },
          ],
        },
      },
    },
    [
      `${selector}.requirements[0].values: Required value: must be specified when \`operator\` is 'In' or 'NotIn'`,
      `${selector}.requirements[1].values: Forbidden: may not be specified when \`operator\` is 'Exists' or 'DoesNotExist'`,
      `${selector}.requirements[1].key: Required value: must be specified`,
    ],
  ],
  [
    'another namespace',
    'localsubjectaccessreviews',
    { user: 'bob', resourceAttributes: { ...pods, namespace: 'b' } },
    ['spec.resourceAttributes.namespace: Invalid value: "b": must match metadata.namespace'],
    'a',
  ],
  [
    'a path in a namespace',
    'localsubjectaccessreviews',
    { user: 'bob', nonResourceAttributes: { path: '/' } },
    ['spec.nonResourceAttributes: Invalid value: {"path":"/"}: disallowed on this kind of request'],
    'a',
  ],
]
for (const [name, resource, spec, want, namespace] of cases)
  test(`AUZ-01 ${resource}: ${name}`, async () => assert.deepEqual(await ask(resource, spec, namespace), want))
