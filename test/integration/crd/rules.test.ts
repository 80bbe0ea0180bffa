/** CEL rules of custom resources, from the definition that brings them to the write that breaks them. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { JSONSchemaProps, ValidationRule } from '#api/gen/types/apiextensions.v1'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { refused } from '../../support/refused.ts'
import { type Any, crdPath, definition, establish, group, object, type Plain, plain, until, version } from './support.ts'

let api: TestApiServer
let client: Plain
before(async () => {
  api = await startTestApiServer()
  client = plain(api.client)
})
after(() => api.close())

let count = 0

/** Serves a kind with this spec and gives the way to its objects. */
async function serve(spec: JSONSchemaProps, more: Partial<JSONSchemaProps> = {}): Promise<{ path: string; kind: string; name: string }> {
  const kind = `Ruled${count++}`
  const plural = `${kind.toLowerCase()}s`
  const schema: JSONSchemaProps = { type: 'object', properties: { spec }, ...more }
  await establish(api.client, definition(plural, kind, [version('v1', schema)], { scope: 'Cluster' }))
  return { path: `/apis/${group}/v1/${plural}`, kind, name: `${plural}.${group}` }
}

async function fault(call: Promise<unknown>): Promise<string> {
  const error = await refused(call)
  assert.equal(error.code, 422)
  return error.message.replace(/^.* is invalid: /, '')
}

const rule = (text: string, more: Partial<ValidationRule> = {}): ValidationRule => ({ rule: text, ...more })

test('CRD-02 a rule runs at create and update, and its error names the field', async () => {
  const { path, kind } = await serve({
    type: 'object',
    properties: { least: { type: 'integer' }, most: { type: 'integer' }, name: { type: 'string', 'x-kubernetes-validations': [rule("self.startsWith('x')")] } },
    'x-kubernetes-validations': [
      rule('self.least <= self.most', { message: 'least must not be above most' }),
      rule('!has(self.name) || size(self.name) < 5', { messageExpression: "'too long: ' + self.name", fieldPath: '.name', reason: 'FieldValueForbidden' }),
    ],
  })
  const post = (spec: object) => client.request('POST', path, object(kind, 'a', spec))
  assert.equal(await fault(post({ least: 2, most: 1 })), 'spec: Invalid value: least must not be above most')
  assert.equal(await fault(post({ least: 1, most: 1, name: 'xxxxxx' })), 'spec.name: Forbidden: too long: xxxxxx')
  assert.equal(await fault(post({ least: 1, most: 1, name: 'y' })), `spec.name: Invalid value: "y": failed rule: self.startsWith('x')`)
  assert.equal(
    await fault(post({ least: 'x', most: 1 })),
    [
      '[spec.least: Invalid value: "string": spec.least in body must be of type integer: "string"',
      '<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]',
    ].join(', '),
  )
  const made = await post({ least: 1, most: 2 })
  assert.equal(await fault(client.request('PUT', `${path}/a`, { ...made, spec: { least: 3, most: 2 } })), 'spec: Invalid value: least must not be above most')
})

test('CRD-02 transition rules compare with what was there, item by item in lists with keys', async () => {
  const { path, kind } = await serve({
    type: 'object',
    properties: {
      fixed: { type: 'string', 'x-kubernetes-validations': [rule('self == oldSelf', { message: 'fixed is immutable' })] },
      parts: {
        type: 'array',
        maxItems: 10,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        items: {
          type: 'object',
          required: ['name'],
          properties: {
            name: { type: 'string' },
            size: { type: 'integer', 'x-kubernetes-validations': [rule('self >= oldSelf', { message: 'may only grow' })] },
          },
        },
      },
      once: {
        type: 'string',
        'x-kubernetes-validations': [rule("oldSelf.hasValue() || self == 'first'", { optionalOldSelf: true, message: 'must begin with first' })],
      },
    },
  })
  assert.equal(await fault(client.request('POST', path, object(kind, 'a', { once: 'second' }))), 'spec.once: Invalid value: "second": must begin with first')
  const made = await client.request(
    'POST',
    path,
    object(kind, 'a', {
      fixed: 'f',
      once: 'first',
      parts: [
        { name: 'x', size: 1 },
        { name: 'y', size: 5 },
      ],
    }),
  )
  const put = (spec: object) => client.request('PUT', `${path}/a`, { ...made, spec })
  assert.equal(await fault(put({ ...made.spec, fixed: 'g' })), 'spec.fixed: Invalid value: "g": fixed is immutable')
  assert.equal(
    await fault(
      put({
        ...made.spec,
        parts: [
          { name: 'y', size: 4 },
          { name: 'new', size: 0 },
          { name: 'x', size: 2 },
        ],
      }),
    ),
    'spec.parts[0].size: Invalid value: 4: may only grow',
  )
  const changed = await put({ ...made.spec, once: 'second', parts: [{ name: 'y', size: 6 }] })
  assert.equal(changed.spec.once, 'second')
})

test('CRD-02 what broke a rule before the rule came is tolerated as long as it is not touched', async () => {
  const spec: JSONSchemaProps = { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } } }
  const { path, kind, name } = await serve(spec)
  const made = await client.request('POST', path, object(kind, 'a', { a: 100, b: 1 }))
  const crd = await client.request('GET', `${crdPath}/${name}`)
  const strict = structuredClone(crd)
  strict.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties = {
    a: { type: 'integer', maximum: 50, 'x-kubernetes-validations': [rule('self < 10', { message: 'must be small' })] },
    b: { type: 'integer' },
  }
  await client.request('PUT', `${crdPath}/${name}`, strict)
  const response = await until('the new schema', async () => {
    const call = api.client.transport.request({ method: 'PUT', path: `${path}/a`, body: { ...made, spec: { a: 100, b: 2 } } })
    const answer = await call.catch(() => undefined)
    return answer && answer.warnings.length > 0 ? answer : undefined
  })
  assert.deepEqual(response.warnings, ['spec.a: Invalid value: 100: must be small'])
  const now = response.body as Any
  assert.equal(
    await fault(client.request('PUT', `${path}/a`, { ...now, spec: { a: 60, b: 2 } })),
    '[spec.a: Invalid value: 60: spec.a in body should be less than or equal to 50, spec.a: Invalid value: 60: must be small]',
  )
})

const refusals: readonly (readonly [string, JSONSchemaProps, RegExp])[] = [
  [
    'does not compile',
    { type: 'object', properties: { a: { type: 'integer' } }, 'x-kubernetes-validations': [rule('self.b > 1')] },
    /spec\.validation\.openAPIV3Schema\.properties\[spec\]\.x-kubernetes-validations\[0\]\.rule: Invalid value: \{"Rule":"self\.b > 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null\}: compilation failed: ERROR: <input>:1:5: undefined field 'b'/,
  ],
  ['is no condition', { type: 'object', 'x-kubernetes-validations': [rule('1 + 1')] }, /rule: Invalid value: .*: cel expression must evaluate to a bool/],
  [
    'is too expensive',
    { type: 'array', items: { type: 'array', items: { type: 'string' } }, 'x-kubernetes-validations': [rule("self.all(x, x.all(y, y.contains('z')))")] },
    /rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x \(try simplifying the rule, or adding maxItems, maxProperties, and maxLength/,
  ],
  [
    'looks back where nothing corresponds',
    { type: 'array', maxItems: 5, items: { type: 'string', maxLength: 5, 'x-kubernetes-validations': [rule('self == oldSelf')] } },
    /rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec\.validation\.openAPIV3Schema\.properties\[spec\]/,
  ],
  [
    'asks for an old value it does not use',
    { type: 'object', 'x-kubernetes-validations': [rule('true', { optionalOldSelf: true })] },
    /optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule/,
  ],
  ['is empty', { type: 'object', 'x-kubernetes-validations': [rule(' ')] }, /rule: Required value: rule is not specified/],
  [
    'points to a field that is not there',
    { type: 'object', properties: { a: { type: 'string' } }, 'x-kubernetes-validations': [rule('true', { fieldPath: '.b' })] },
    /fieldPath: Invalid value: "\.b": must be a valid path/,
  ],
  [
    'has a message that is no text',
    { type: 'object', 'x-kubernetes-validations': [rule('true', { messageExpression: '1' })] },
    /messageExpression: Invalid value: .*: messageExpression must evaluate to a string/,
  ],
  [
    'is broken by a default',
    { type: 'object', properties: { a: { type: 'integer', default: 5, 'x-kubernetes-validations': [rule('self < 3')] } } },
    /properties\[a\]\.default: Invalid value: 5: failed rule: self < 3/,
  ],
]
for (const [what, spec, wanted] of refusals) {
  test(`CRD-02 a definition is refused whose rule ${what}`, async () => {
    const body = definition('bads', 'Bad', [version('v1', { type: 'object', properties: { spec } })])
    assert.match((await refused(client.request('POST', crdPath, body))).message, wanted)
  })
}

test('CRD-02 a rule that runs wild at run time is stopped within its budget', async () => {
  const list = (items: JSONSchemaProps): JSONSchemaProps => ({ type: 'array', maxItems: 100, items })
  const nested = 'self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d >= 0))))'
  const { path, kind } = await serve({
    type: 'object',
    properties: { n: { ...list({ type: 'integer' }), maxItems: 25, 'x-kubernetes-validations': [rule(nested)] } },
  })
  const numbers = Array.from({ length: 25 }, (_, at) => at)
  const message = await fault(client.request('POST', path, object(kind, 'a', { n: numbers })))
  assert.match(
    message,
    /^spec\.n: Invalid value: "array": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: /,
  )
})

test('CRD-02 rules know the names of the object, int-or-string, and Kubernetes libraries', async () => {
  const { path, kind } = await serve(
    { type: 'object', properties: { port: { 'x-kubernetes-int-or-string': true, maxLength: 8 }, memory: { type: 'string', maxLength: 20 } } },
    {
      'x-kubernetes-validations': [
        rule("self.metadata.name.startsWith('ok')", { message: 'must be ok' }),
        rule("!has(self.spec.port) || (type(self.spec.port) == int ? self.spec.port > 0 : self.spec.port == 'http')", { message: 'bad port' }),
        rule("!has(self.spec.memory) || quantity(self.spec.memory).isGreaterThan(quantity('1Mi'))", { message: 'too little' }),
      ],
    },
  )
  const post = (name: string, spec: object) => client.request('POST', path, object(kind, name, spec))
  assert.equal(await fault(post('no', {})), '<nil>: Invalid value: must be ok')
  assert.equal(await fault(post('ok', { port: 0 })), '<nil>: Invalid value: bad port')
  assert.equal(await fault(post('ok', { port: 'x', memory: '1Ki' })), '[<nil>: Invalid value: bad port, <nil>: Invalid value: too little]')
  await post('ok', { port: 'http', memory: '2Mi' })
})
