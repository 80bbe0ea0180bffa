/** kubectl auth with its four commands, and certificate requests, approved and denied. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { type Family, fails, listOf, says } from './steps.ts'

const rbac = 'rbac.authorization.k8s.io'
const role = (verb: string) => ({
  apiVersion: `${rbac}/v1`,
  kind: 'ClusterRole',
  metadata: { name: 'access-reconciled' },
  rules: [{ apiGroups: [''], resources: ['pods'], verbs: [verb] }],
})
const binding = {
  apiVersion: `${rbac}/v1`,
  kind: 'ClusterRoleBinding',
  metadata: { name: 'access-reconciled' },
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'access-reconciled' },
  subjects: [{ apiGroup: rbac, kind: 'User', name: 'reconciled' }],
}
const certificateRequest = (name: string, request: Buffer) => ({
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  metadata: { name },
  spec: { request: request.toString('base64'), signerName: 'example.com/none', usages: ['client auth'], expirationSeconds: 3600 },
})

export const access: Family = {
  name: 'access',
  prepare: async ({ dir }) => {
    await fs.writeFile(path.join(dir, 'get.json'), listOf([role('get'), binding]))
    await fs.writeFile(path.join(dir, 'list.json'), listOf([role('list'), binding]))
    const openssl = ['req', '-new', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'jane.key', '-out', 'jane.csr', '-subj', '/CN=jane/O=devs']
    execFileSync('openssl', openssl, { cwd: dir, stdio: 'ignore' })
    const request = await fs.readFile(path.join(dir, 'jane.csr'))
    await fs.writeFile(path.join(dir, 'requests.json'), listOf([certificateRequest('access-yes', request), certificateRequest('access-no', request)]))
  },
  steps: [
    says('auth can-i create pods', 'yes'),
    says('auth can-i create pods --as=bob', 'no', { code: 1 }),
    says(`auth can-i '*' '*' --as=bob -q`, '', { code: 1 }),
    says('auth can-i get /healthz', 'yes'),
    says('auth can-i create nonsense', 'yes', { err: /the server doesn't have a resource type 'nonsense'/ }),
    says('auth can-i list nodes', 'yes', { err: /resource 'nodes' is not namespace scoped/ }),
    says('auth can-i get pods --subresource=log', 'yes'),
    says('auth can-i --list', /Resources +Non-Resource URLs +Resource Names +Verbs\n\*\.\* +\[\] +\[\] +\[\*\]/),
    says('auth can-i --list --as=system:serviceaccount:access:default', [
      /selfsubjectaccessreviews\.authorization\.k8s\.io +\[\] +\[\] +\[create\]/,
      /\[\/healthz\] +\[\] +\[get\]/,
    ]),

    says('auth reconcile -f get.json', /clusterrole\.\S+\/access-reconciled reconciled\nclusterrolebinding\.\S+\/access-reconciled reconciled/, {
      err: [
        /reconciliation required create\n\tmissing rules added:\n\t\t\{Verbs:\[get\] APIGroups:\[\] Resources:\[pods\]/,
        /reconciliation required create\n\tmissing subjects added:\n\t\t\{Kind:User APIGroup:rbac\.authorization\.k8s\.io Name:reconciled/,
      ],
    }),
    says('auth can-i get pods --as=reconciled', 'yes', { until: true }),
    says('auth reconcile -f list.json', /reconciled/, { err: /reconciliation required update\n\tmissing rules added:\n\t\t\{Verbs:\[list\]/ }),
    says('auth reconcile -f list.json --remove-extra-permissions', /reconciled/, {
      err: /reconciliation required update\n\textra rules removed:\n\t\t\{Verbs:\[get\]/,
    }),
    says(`get clusterrole access-reconciled -o jsonpath='{.rules[*].verbs}'`, '["list"]'),
    says('auth whoami', [/ATTRIBUTE +VALUE\nUsername +kubernetes-admin\nGroups +\[system:masters system:authenticated\]/], { since: 28 }),
    says(`auth whoami --as=jane --as-group=devs -o jsonpath='{.status.userInfo}'`, '{"groups":["devs","system:authenticated"],"username":"jane"}', {
      since: 28,
    }),

    says('create -f requests.json', /access-yes created\ncertificatesigningrequest\.certificates\.k8s\.io\/access-no created/),
    says(
      'get csr access-yes',
      /NAME +AGE +SIGNERNAME +REQUESTOR +REQUESTEDDURATION +CONDITION\naccess-yes +\S+ +example\.com\/none +kubernetes-admin +60m +Pending/,
    ),
    says('certificate approve access-yes', 'certificatesigningrequest.certificates.k8s.io/access-yes approved'),
    says('certificate deny access-no', 'certificatesigningrequest.certificates.k8s.io/access-no denied'),
    says('get csr', [/access-no .* Denied/, /access-yes .* Approved/]),
    says(
      `get csr access-yes -o jsonpath='{.status.conditions[0].type} {.status.conditions[0].reason} {.status.conditions[0].status}'`,
      'Approved KubectlApprove True',
    ),
    fails('certificate deny access-yes', /certificate signing request "access-yes" is already Approved|Approved and Denied conditions are mutually exclusive/),
    fails('certificate approve nobody', /certificatesigningrequests\.certificates\.k8s\.io "nobody" not found/),
    says('describe csr access-yes', [/Requesting User: +kubernetes-admin/, /Status: +Approved/, /Common Name: +jane/, /Organization: +devs/]),
  ],
}
