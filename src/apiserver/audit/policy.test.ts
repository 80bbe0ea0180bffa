import assert from 'node:assert/strict'
import test from 'node:test'
import { parseRequestInfo } from '../core/requestInfo.ts'
import { parseAuditPolicy } from './policy.ts'

const policy = parseAuditPolicy(`
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  users: ["system:kube-proxy"]
  verbs: [watch]
  resources: [{group: "", resources: [endpoints, services]}]
- level: None
  userGroups: ["system:authenticated"]
  nonResourceURLs: ["/api*", /version]
- level: Request
  resources: [{group: "", resources: [configmaps], resourceNames: [special]}]
  namespaces: [kube-system]
  omitStages: [ResponseStarted]
  omitManagedFields: false
- level: Metadata
  resources: [{group: "", resources: ["pods/log", "*/status", "services/*"]}, {group: apps}]
- level: RequestResponse
  verbs: [create, patch]
  resources: [{group: "*", resources: ["*"]}]
- level: Metadata
  namespaces: [""]
- level: Metadata
  nonResourceURLs: ["*"]
  users: [nobody]
`)

const proxy = { name: 'system:kube-proxy', groups: ['system:nodes'] }
const alice = { name: 'alice', groups: ['system:authenticated'] }
const nobody = { name: 'nobody', groups: [] }
const cases = [
  { user: proxy, method: 'GET', url: '/api/v1/services?watch=1', want: 'None' },
  { user: proxy, method: 'GET', url: '/api/v1/services', want: 'Metadata' },
  { user: alice, method: 'GET', url: '/apis', want: 'None' },
  { user: alice, method: 'GET', url: '/version', want: 'None' },
  { user: alice, method: 'GET', url: '/version/x', want: 'None' },
  { user: nobody, method: 'GET', url: '/version', want: 'Metadata' },
  { user: undefined, method: 'GET', url: '/version', want: 'None' },
  { user: alice, method: 'GET', url: '/api/v1/namespaces/kube-system/configmaps/special', want: 'Request' },
  { user: alice, method: 'GET', url: '/api/v1/namespaces/kube-system/configmaps/other', want: 'None' },
  { user: alice, method: 'GET', url: '/api/v1/namespaces/a/pods/p/log', want: 'Metadata' },
  { user: alice, method: 'GET', url: '/api/v1/namespaces/a/pods/p', want: 'None' },
  { user: alice, method: 'GET', url: '/api/v1/namespaces/a/pods/p/status', want: 'Metadata' },
  { user: alice, method: 'GET', url: '/api/v1/namespaces/a/services/s/proxy', want: 'Metadata' },
  { user: alice, method: 'GET', url: '/apis/apps/v1/namespaces/a/deployments/d', want: 'Metadata' },
  { user: alice, method: 'POST', url: '/api/v1/namespaces/a/pods', want: 'RequestResponse' },
  { user: alice, method: 'POST', url: '/api/v1/namespaces/a/pods/p/eviction', want: 'RequestResponse' },
  { user: alice, method: 'GET', url: '/api/v1/nodes/n', want: 'Metadata' },
]
for (const { user, method, url, want } of cases) {
  test(`API-21 ${user?.name} ${method} ${url} is audited at ${want}`, () => {
    const [path = '', query] = url.split('?')
    assert.equal(policy.ruleFor({ ...(user && { user }), info: parseRequestInfo(method, path, new URLSearchParams(query)) })?.level ?? 'None', want)
  })
}

test('API-21 rules add to the stages that are left out, and decide about managed fields themselves', () => {
  const info = (path: string) => parseRequestInfo('GET', path, new URLSearchParams())
  assert.deepEqual(policy.ruleFor({ user: alice, info: info('/api/v1/namespaces/kube-system/configmaps/special') }), {
    level: 'Request',
    omitStages: new Set(['RequestReceived', 'ResponseStarted']),
    omitManagedFields: false,
  })
  assert.deepEqual(policy.ruleFor({ user: alice, info: info('/api/v1/nodes/n') }), {
    level: 'Metadata',
    omitStages: new Set(['RequestReceived']),
    omitManagedFields: true,
  })
})

const head = 'apiVersion: audit.k8s.io/v1\nkind: Policy\n'
const faulty = [
  { text: '', want: 'empty config data' },
  { text: `${head}rules: []`, want: 'loaded illegal policy with 0 rules' },
  { text: 'apiVersion: audit.k8s.io/v1beta1\nkind: Policy', want: 'no kind "Policy" is registered for version "audit.k8s.io/v1beta1"' },
  { text: `${head}rules: [{level: None, user: [a]}]`, want: 'strict decoding error: unknown field "rules[0].user"' },
  { text: `${head}rules: [{verbs: [get]}]`, want: 'rules[0].level: Required value' },
  {
    text: `${head}rules: [{level: All}]`,
    want: 'rules[0].level: Unsupported value: "All": supported values: "None", "Metadata", "Request", "RequestResponse"',
  },
  {
    text: `${head}omitStages: [Begin]\nrules: [{level: None}]`,
    want: 'omitStages[0]: Invalid value: "Begin": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic',
  },
  {
    text: `${head}rules: [{level: None, nonResourceURLs: [api, "/a*b"]}]`,
    want: `[rules[0].nonResourceURLs[0]: Invalid value: "api": non-resource URL rules must begin with a '/' character, rules[0].nonResourceURLs[1]: Invalid value: "/a*b": non-resource URL wildcards '*' must be the final character of the rule]`,
  },
  {
    text: `${head}rules: [{level: None, nonResourceURLs: [/api], namespaces: [a]}]`,
    want: 'rules[0].nonResourceURLs: Invalid value: ["/api"]: rules cannot apply to both regular resources and non-resource URLs',
  },
  {
    text: `${head}rules: [{level: None, resources: [{group: rbac.authorization.k8s.io/v1, resourceNames: [x]}]}]`,
    want: `[rules[0].resources.group: Invalid value: "rbac.authorization.k8s.io/v1": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), rules[0].resources.resourceNames: Invalid value: ["x"]: using resourceNames requires at least one resource]`,
  },
]
for (const { text, want } of faulty) {
  test(`API-21 a policy is refused: ${want.slice(0, 70)}`, () => {
    assert.throws(() => parseAuditPolicy(text), { message: want })
  })
}
