import type {
  MutatingAdmissionPolicy,
  MutatingAdmissionPolicyBinding,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
  ValidatingWebhookConfiguration,
} from '#api/gen/types/admissionregistration.v1'
import { kindRules } from '#testing/kindRules'
import { mutatingAdmissionPolicy, mutatingAdmissionPolicyBinding } from './mutatingAdmissionPolicy.ts'
import { validatingAdmissionPolicy, validatingAdmissionPolicyBinding } from './validatingAdmissionPolicy.ts'
import { validatingWebhookConfiguration } from './webhookConfiguration.ts'

const apiVersion = 'admissionregistration.k8s.io/v1'
const rules = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }]
const goodHooks: ValidatingWebhookConfiguration = {
  apiVersion,
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'hooks' },
  webhooks: [
    {
      name: 'a.example.com',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      clientConfig: { service: { namespace: 'd', name: 's' } },
      rules: structuredClone(rules),
    },
  ],
}
const onHooks = kindRules('EXP-04', validatingWebhookConfiguration, goodHooks)
const hook = 'webhooks[0]'
onHooks.defaults(
  'a webhook',
  {},
  {
    'webhooks.0.failurePolicy': 'Fail',
    'webhooks.0.matchPolicy': 'Equivalent',
    'webhooks.0.namespaceSelector': {},
    'webhooks.0.objectSelector': {},
    'webhooks.0.timeoutSeconds': 10,
    'webhooks.0.clientConfig.service.port': 443,
    'webhooks.0.rules.0.scope': '*',
  },
)
onHooks.create([
  ['a good one', {}, []],
  ['no name', { 'webhooks.0.name': '' }, [`${hook}.name: Required value`]],
  [
    'a short name',
    { 'webhooks.0.name': 'example.com' },
    [`${hook}.name: Invalid value: "example.com": should be a domain with at least three segments separated by dots`],
  ],
  ['a name twice', { 'webhooks.1': { ...goodHooks.webhooks?.[0] } }, ['webhooks[1].name: Duplicate value: "a.example.com"']],
  ['no review', { 'webhooks.0.admissionReviewVersions': [] }, [`${hook}.admissionReviewVersions: Required value: must specify one of v1, v1beta1`]],
  [
    'an unknown review',
    { 'webhooks.0.admissionReviewVersions': ['v9'] },
    [`${hook}.admissionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1`],
  ],
  ['a review twice', { 'webhooks.0.admissionReviewVersions': ['v1', 'v1'] }, [`${hook}.admissionReviewVersions[1]: Invalid value: "v1": duplicate version`]],
  ['side effects', { 'webhooks.0.sideEffects': 'Some' }, [`${hook}.sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"`]],
  ['silence about side effects', { 'webhooks.0.sideEffects': undefined }, [`${hook}.sideEffects: Required value: must specify one of None, NoneOnDryRun`]],
  ['a long wait', { 'webhooks.0.timeoutSeconds': 31 }, [`${hook}.timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds`]],
  ['no client', { 'webhooks.0.clientConfig': {} }, [`${hook}.clientConfig: Required value: exactly one of url or service is required`]],
  [
    'plain http',
    { 'webhooks.0.clientConfig': { url: 'http://a.b/c' } },
    [`${hook}.clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`],
  ],
  [
    'a query',
    { 'webhooks.0.clientConfig': { url: 'https://a.b/c?d=e' } },
    [`${hook}.clientConfig.url: Invalid value: "d=e": query parameters are not permitted in the URL`],
  ],
  ['no service name', { 'webhooks.0.clientConfig.service.name': '' }, [`${hook}.clientConfig.service.name: Required value: service name is required`]],
  [
    'an empty path segment',
    { 'webhooks.0.clientConfig.service.path': '/a//b' },
    [`${hook}.clientConfig.service.path: Invalid value: "/a//b": segment[1] may not be empty`],
  ],
  ['no operations', { 'webhooks.0.rules.0.operations': [] }, [`${hook}.rules[0].operations: Required value`]],
  [
    'an unknown operation',
    { 'webhooks.0.rules.0.operations': ['READ'] },
    [`${hook}.rules[0].operations[0]: Unsupported value: "READ": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"`],
  ],
  [
    'a wildcard next to a named group',
    { 'webhooks.0.rules.0.apiGroups': ['*', 'apps'] },
    [`${hook}.rules[0].apiGroups: Invalid value: ["*","apps"]: if '*' is present, must not specify other API groups`],
  ],
  [
    'a resource that a star covers',
    { 'webhooks.0.rules.0.resources': ['pods/*', 'pods/exec'] },
    [`${hook}.rules[0].resources[1]: Invalid value: "pods/exec": if 'pods/*' is present, must not specify pods/exec`],
  ],
  [
    'everything and more',
    { 'webhooks.0.rules.0.resources': ['*', 'pods'] },
    [`${hook}.rules[0].resources: Invalid value: ["*","pods"]: if '*' is present, must not specify other resources without subresources`],
  ],
  [
    'an unknown scope',
    { 'webhooks.0.rules.0.scope': 'Galaxy' },
    [`${hook}.rules[0].scope: Unsupported value: "Galaxy": supported values: "*", "Cluster", "Namespaced"`],
  ],
  [
    'conditions without names and expressions',
    { 'webhooks.0.matchConditions': [{ name: '', expression: ' ' }] },
    [`${hook}.matchConditions[0].expression: Required value`, `${hook}.matchConditions[0].name: Required value`],
  ],
  [
    'a condition twice',
    {
      'webhooks.0.matchConditions': [
        { name: 'a', expression: 'true' },
        { name: 'a', expression: 'true' },
      ],
    },
    [`${hook}.matchConditions[1].name: Duplicate value: "a"`],
  ],
])
onHooks.update([
  ['old side effects may stay', { 'metadata.labels': { a: 'b' } }, [], { 'webhooks.0.sideEffects': 'Some' }],
  ['an old expression may stay', { 'metadata.labels': { a: 'b' } }, [], { 'webhooks.0.matchConditions': [{ name: 'a', expression: '1 +' }] }],
])

const goodPolicy: ValidatingAdmissionPolicy = {
  apiVersion,
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name: 'policy.example.com' },
  spec: { matchConstraints: { resourceRules: structuredClone(rules) }, validations: [{ expression: 'object.spec.replicas < 5' }] },
  status: {},
}
const onPolicy = kindRules('EXP-04', validatingAdmissionPolicy, goodPolicy)
const undeclared = (field: string, expression: string, name: string, column = 0) =>
  `${field}: Invalid value: ${JSON.stringify(expression)}: compilation failed: ERROR: <input>:1:${column + 1}: undeclared reference to '${name}' (in container '')\n | ${expression}\n | ${'.'.repeat(column)}^`
const wrongResult = (field: string, expression: string, wanted: string, got: string) =>
  `${field}: Invalid value: ${JSON.stringify(expression)}: must evaluate to ${wanted} but got ${got}`
const neither = 'validations or auditAnnotations must contain at least one item'
onPolicy.create([
  ['a good one', {}, []],
  ['nothing to say', { 'spec.validations': [] }, [`spec.validations: Required value: ${neither}`, `spec.auditAnnotations: Required value: ${neither}`]],
  ['about nothing', { 'spec.matchConstraints': undefined }, ['spec.matchConstraints: Required value']],
  ['about no resources', { 'spec.matchConstraints.resourceRules': [] }, ['spec.matchConstraints.resourceRules: Required value']],
  ['an unknown failure policy', { 'spec.failurePolicy': 'Maybe' }, ['spec.failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"']],
  [
    'parameters of no kind',
    { 'spec.paramKind': { apiVersion: 'a/b/c', kind: '' } },
    ['spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c', 'spec.paramKind.kind: Required value'],
  ],
  [
    'an expression that cannot be read',
    { 'spec.validations.0.expression': 'object.' },
    [
      'spec.validations[0].expression: Invalid value: "object.": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input \'.\'\n | object.\n | .......^',
    ],
  ],
  [
    'a name that is not there',
    { 'spec.validations.0.expression': 'params.max > 1' },
    [
      "spec.validations[0].expression: Invalid value: \"params.max > 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.max > 1\n | ^",
    ],
  ],
  ['parameters where there are some', { 'spec.paramKind': { apiVersion: 'v1', kind: 'ConfigMap' }, 'spec.validations.0.expression': 'params.max > 1' }, []],
  [
    'an authorizer, and functions of Kubernetes',
    { 'spec.validations.0.expression': "authorizer.group('').resource('pods').check('get').allowed() && quantity(object.spec.x).isGreaterThan(quantity('1'))" },
    [],
  ],
  [
    'no answer',
    { 'spec.validations.0.expression': "'yes'" },
    ['spec.validations[0].expression: Invalid value: "\'yes\'": must evaluate to bool but got string'],
  ],
  ['no expression', { 'spec.validations.0.expression': ' ' }, ['spec.validations[0].expression: Required value: expression is not specified']],
  ['a message of two lines', { 'spec.validations.0.message': 'a\nb' }, ['spec.validations[0].message: Invalid value: "a\\nb": must not contain line breaks']],
  [
    'an unknown reason',
    { 'spec.validations.0.reason': 'Gone' },
    ['spec.validations[0].reason: Unsupported value: "Gone": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"'],
  ],
  [
    'a variable with a reserved name',
    { 'spec.variables': [{ name: 'for', expression: '1' }] },
    ['spec.variables[0].name: Invalid value: "for": must be a valid CEL identifier'],
  ],
  [
    'a condition that names variables, which only what comes after it may',
    { 'spec.variables': [{ name: 'a', expression: '1' }], 'spec.matchConditions': [{ name: 'c', expression: 'variables.a == 1' }] },
    [undeclared('spec.matchConditions[0].expression', 'variables.a == 1', 'variables')],
  ],
  [
    'a condition of any type',
    { 'spec.matchConditions': [{ name: 'c', expression: 'object.x' }] },
    [wrongResult('spec.matchConditions[0].expression', 'object.x', 'bool', 'dyn')],
  ],
  ['a validation of any type', { 'spec.validations.0.expression': 'object.x' }, [wrongResult('spec.validations[0].expression', 'object.x', 'bool', 'dyn')]],
  [
    'variables where there are none',
    { 'spec.validations.0.expression': 'variables.a' },
    [undeclared('spec.validations[0].expression', 'variables.a', 'variables')],
  ],
  [
    'variables that use those before them',
    {
      'spec.variables': [
        { name: 'a', expression: '1' },
        { name: 'b', expression: 'variables.a + 1' },
      ],
      'spec.validations.0.expression': 'variables.b > 1',
    },
    [],
  ],
  [
    'a variable of another type',
    { 'spec.variables': [{ name: 'a', expression: "'x'" }], 'spec.validations.0.expression': 'variables.a' },
    [wrongResult('spec.validations[0].expression', 'variables.a', 'bool', 'string')],
  ],
  [
    'a variable that uses one after it',
    {
      'spec.variables': [
        { name: 'b', expression: 'variables.a' },
        { name: 'a', expression: '1' },
      ],
    },
    [
      'spec.variables[0].expression: Invalid value: "variables.a": compilation failed: ERROR: <input>:1:10: undefined field \'a\'\n | variables.a\n | .........^',
    ],
  ],
  [
    'a mistyped field of the request',
    { 'spec.variables': [{ name: 'v', expression: 'request.nope' }] },
    [
      'spec.variables[0].expression: Invalid value: "request.nope": compilation failed: ERROR: <input>:1:8: undefined field \'nope\'\n | request.nope\n | .......^',
    ],
  ],
  ['a message that is a number', { 'spec.validations.0.messageExpression': '1' }, [wrongResult('spec.validations[0].messageExpression', '1', 'string', 'int')]],
  [
    'a message that asks the authorizer',
    { 'spec.validations.0.messageExpression': 'string(authorizer)' },
    [undeclared('spec.validations[0].messageExpression', 'string(authorizer)', 'authorizer', 7)],
  ],
  [
    'an annotation of any type',
    { 'spec.auditAnnotations': [{ key: 'a', valueExpression: ' object.x' }] },
    ['spec.auditAnnotations[0].valueExpression: Invalid value: " object.x": must evaluate to one of [string null_type] but got dyn'],
  ],
  ['an annotation that is nothing', { 'spec.auditAnnotations': [{ key: 'a', valueExpression: 'null' }] }, []],
  [
    'an annotation twice',
    {
      'spec.auditAnnotations': [
        { key: 'a', valueExpression: '"x"' },
        { key: 'a', valueExpression: '"x"' },
      ],
    },
    ['spec.auditAnnotations[1].key: Duplicate value: "a"'],
  ],
])
onPolicy.update([
  ['old conditions stay unread', { 'metadata.labels': { a: 'b' } }, [], { 'spec.matchConditions': [{ name: 'a', expression: '1 +' }] }],
  [
    'an old validation is read with new variables',
    { 'spec.variables': [{ name: 'a', expression: '1' }] },
    [wrongResult('spec.validations[0].expression', 'variables.a', 'bool', 'int')],
    { 'spec.variables': [{ name: 'a', expression: 'true' }], 'spec.validations.0.expression': 'variables.a' },
  ],
])
onPolicy.subresource('status', [
  [
    'a warning of nothing',
    { 'status.typeChecking': { expressionWarnings: [{ warning: '', fieldRef: '' }] } },
    ['status.typeChecking.expressionWarnings[0].warning: Required value', 'status.typeChecking.expressionWarnings[0].fieldRef: Required value'],
  ],
])

const goodBinding: ValidatingAdmissionPolicyBinding = {
  apiVersion,
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: { name: 'b' },
  spec: { policyName: 'policy.example.com', validationActions: ['Deny'] },
}
const onBinding = kindRules('EXP-04', validatingAdmissionPolicyBinding, goodBinding)
onBinding.create([
  ['a good one', {}, []],
  ['no policy', { 'spec.policyName': '' }, ['spec.policyName: Required value']],
  ['no action', { 'spec.validationActions': [] }, ['spec.validationActions: Required value: at least one validation action is required']],
  [
    'denying with a warning',
    { 'spec.validationActions': ['Deny', 'Warn'] },
    [
      'spec.validationActions: Invalid value: ["Deny","Warn"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)',
    ],
  ],
  [
    'parameters by nothing',
    { 'spec.paramRef': {} },
    ['spec.paramRef: Required value: one of name or selector must be specified', 'spec.paramRef.parameterNotFoundAction: Required value'],
  ],
  [
    'parameters by name and selector',
    { 'spec.paramRef': { name: 'a', selector: {}, parameterNotFoundAction: 'Deny' } },
    ['spec.paramRef.name: Forbidden: name and selector are mutually exclusive', 'spec.paramRef.selector: Forbidden: name and selector are mutually exclusive'],
  ],
])

const goodMutation: MutatingAdmissionPolicy = {
  apiVersion,
  kind: 'MutatingAdmissionPolicy',
  metadata: { name: 'm' },
  spec: {
    matchConstraints: { resourceRules: structuredClone(rules) },
    mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: '[JSONPatch{op: "remove", path: "/metadata/labels"}]' } }],
  },
}
const onMutation = kindRules('EXP-04', mutatingAdmissionPolicy, goodMutation)
onMutation.create([
  ['a good one', {}, []],
  ['nothing to change', { 'spec.mutations': [] }, ['spec.mutations: Required value: mutations must contain at least one item']],
  ['no type', { 'spec.mutations.0.patchType': '' }, ['spec.mutations[0].patchType: Required value']],
  [
    'another type than its patch',
    { 'spec.mutations.0.patchType': 'ApplyConfiguration' },
    [
      'spec.mutations[0].applyConfiguration: Required value: must be specified when patchType is ApplyConfiguration',
      'spec.mutations[0].jsonPatch: Invalid value: "{jsonPatch}": must not be specified when patchType is ApplyConfiguration',
    ],
  ],
  [
    'changing what goes away',
    { 'spec.matchConstraints.resourceRules.0.operations': ['DELETE'] },
    ['spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"'],
  ],
  [
    'an unknown second round',
    { 'spec.reinvocationPolicy': 'Always' },
    ['spec.reinvocationPolicy: Unsupported value: "Always": supported values: "IfNeeded", "Never"'],
  ],
  [
    'a patch of other things',
    { 'spec.mutations.0.jsonPatch.expression': ' [1] ' },
    [wrongResult('spec.mutations[0].jsonPatch.expression', '[1]', 'list(JSONPatch)', 'list(int)')],
  ],
  [
    'a patch of nothing',
    { 'spec.mutations.0.jsonPatch.expression': '[]' },
    [wrongResult('spec.mutations[0].jsonPatch.expression', '[]', 'list(JSONPatch)', 'list(dyn)')],
  ],
  [
    'a configuration of a part',
    { 'spec.mutations.0': { patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Object.spec{}' } } },
    [wrongResult('spec.mutations[0].applyConfiguration.expression', 'Object.spec{}', 'Object', 'Object.spec')],
  ],
  [
    'a map for a configuration',
    { 'spec.mutations.0': { patchType: 'ApplyConfiguration', applyConfiguration: { expression: '{"a": "b"}' } } },
    [wrongResult('spec.mutations[0].applyConfiguration.expression', '{"a": "b"}', 'Object', 'map(string, string)')],
  ],
  [
    'a configuration with variables',
    {
      'spec.variables': [{ name: 'n', expression: '3' }],
      'spec.mutations.0': { patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Object{spec: Object.spec{replicas: variables.n}}' } },
    },
    [],
  ],
])

const goodMutationBinding: MutatingAdmissionPolicyBinding = {
  apiVersion,
  kind: 'MutatingAdmissionPolicyBinding',
  metadata: { name: 'b' },
  spec: { policyName: 'm', matchResources: { resourceRules: structuredClone(rules) } },
}
kindRules('EXP-04', mutatingAdmissionPolicyBinding, goodMutationBinding).create([
  ['a good one', {}, []],
  [
    'changing what goes away',
    { 'spec.matchResources.resourceRules.0.operations': ['DELETE'] },
    ['spec.matchResources.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"'],
  ],
])
