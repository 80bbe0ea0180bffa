/** What the refusals are made of, and the objects that are there before them. */
import type { ApiRequest } from '#client/transport'

export type Body = Readonly<Record<string, unknown>>
export type Given = Omit<ApiRequest, 'path'> & { readonly path: string }

export const rbac = '/apis/rbac.authorization.k8s.io/v1'
export const core = (namespace: string, resource: string) => `/api/v1/namespaces/${namespace}/${resource}`
export const post = (path: string, body: Body, more: Partial<ApiRequest> = {}): Given => ({ method: 'POST', path, body, ...more })
export const get = (path: string): Given => ({ method: 'GET', path })
export const strict = { query: { fieldValidation: 'Strict' } }
export const merge = 'application/merge-patch+json'

export const configMap = (name: string, more: Body = {}) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...more } })
export const container = { name: 'c', image: 'busybox' }
export const pod = (name: string, spec: Body = {}, containers: unknown = [container]) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers, ...spec },
})
export const limited = (cpu: string) => [{ ...container, resources: { limits: { cpu }, requests: { cpu } } }]
export const namespace = (name: string, labels: Body = {}) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
export const role = (name: string, rules: readonly Body[]) => ({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name }, rules })
export const binding = (name: string, roleName: string, user: string) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: roleName },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
})
export const rule = (apiGroups: string[], resources: string[], verbs: string[], more: Body = {}) => ({ apiGroups, resources, verbs, ...more })
export const deployment = (name: string, label: string) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec: { selector: { matchLabels: { app: label } }, template: { metadata: { labels: { app: label } }, spec: { containers: [container] } } },
})

export const fixtures: readonly (readonly [string, Body])[] = [
  ...['a', 'b', 'full', 'small', 'hooked', 'ruled', 'leaving', 'quotaed'].map((name) => ['/api/v1/namespaces', namespace(name)] as const),
  ['/api/v1/namespaces', namespace('strict', { 'pod-security.kubernetes.io/enforce': 'restricted' })],
  ...['a', 'full', 'small', 'strict', 'quotaed'].map((name) => [core(name, 'serviceaccounts'), { metadata: { name: 'default' } }] as const),
  [
    `${rbac}/namespaces/a/roles`,
    role('reader', [rule([''], ['pods'], ['get', 'list']), rule([''], ['secrets'], ['get'], { resourceNames: ['s1'] }), rule([''], ['deployments'], ['list'])]),
  ],
  [`${rbac}/namespaces/a/roles`, role('granter', [rule(['rbac.authorization.k8s.io'], ['roles', 'rolebindings'], ['create'])])],
  [`${rbac}/namespaces/b/roles`, role('maker', [rule([''], ['pods'], ['create'])])],
  [`${rbac}/namespaces/a/rolebindings`, binding('dev', 'reader', 'bob')],
  [`${rbac}/namespaces/a/rolebindings`, binding('grants', 'granter', 'bob')],
  [`${rbac}/namespaces/b/rolebindings`, binding('amy', 'maker', 'amy')],
  ...['a', 'hooked', 'small'].flatMap((name): (readonly [string, Body])[] => [
    [`${rbac}/namespaces/${name}/roles`, role('adder', [rule([''], ['pods', 'configmaps'], ['create'])])],
    [`${rbac}/namespaces/${name}/rolebindings`, binding('cid', 'adder', 'cid')],
  ]),
  [core('full', 'resourcequotas'), { metadata: { name: 'q' }, spec: { hard: { pods: '1' } } }],
  [core('quotaed', 'resourcequotas'), { metadata: { name: 'cpu' }, spec: { hard: { 'limits.cpu': '1' } } }],
  [core('small', 'limitranges'), { metadata: { name: 'bounds' }, spec: { limits: [{ type: 'Container', max: { cpu: '1' } }] } }],
  [core('a', 'configmaps'), configMap('there')],
  [core('a', 'configmaps'), configMap('held', { finalizers: ['example.com/wait'] })],
  [core('a', 'configmaps'), { ...configMap('locked'), immutable: true, data: { k: 'v' } }],
  [core('a', 'pods'), { ...pod('runs'), metadata: { name: 'runs', labels: { app: 'runs' } } }],
  ['/apis/policy/v1/namespaces/a/poddisruptionbudgets', { metadata: { name: 'keep' }, spec: { minAvailable: 1, selector: { matchLabels: { app: 'runs' } } } }],
  ['/apis/apps/v1/namespaces/a/deployments', deployment('shop', 'shop')],
  [core('a', 'persistentvolumeclaims'), { metadata: { name: 'disk' }, spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } }],
  ['/api/v1/nodes', { metadata: { name: 'n1' } }],
  ['/api/v1/nodes', { metadata: { name: 'n2' } }],
  [
    '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
    {
      metadata: { name: 'broken' },
      webhooks: [
        {
          name: 'broken.example.com',
          clientConfig: { url: 'https://127.0.0.1:1/' },
          rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'hooked' } },
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
          timeoutSeconds: 5,
        },
      ],
    },
  ],
  [
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
    {
      metadata: { name: 'no-blue' },
      spec: {
        matchConstraints: { resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }] },
        validations: [{ expression: "!has(object.data) || !('blue' in object.data)", message: 'blue is not allowed' }],
      },
    },
  ],
  [
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
    {
      metadata: { name: 'no-blue-here' },
      spec: {
        policyName: 'no-blue',
        validationActions: ['Deny'],
        matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ruled' } } },
      },
    },
  ],
]
