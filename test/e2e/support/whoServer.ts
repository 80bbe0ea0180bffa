/**
 * A pod that is everything that an API server calls in a cluster: a web page, a validating webhook and an extension API server. Each answer names the cluster. It
 * runs the host's Node.js, mounted from the host.
 */
const port = 8443
const plainPort = 8080
export const whoGroup = 'who.example.test'

const program = `
const { CLUSTER: cluster, CERT: cert, KEY: key } = process.env
const json = (response, value) => { response.setHeader('content-type', 'application/json'); response.end(JSON.stringify(value)) }
const group = '/apis/${whoGroup}/v1'
const serve = (request, response) => {
  let text = ''
  request.on('data', (chunk) => { text += chunk })
  request.on('end', () => {
    const path = request.url.split('?')[0]
    if (path === '/validate') {
      const { apiVersion, kind, request: { uid } } = JSON.parse(text)
      json(response, { apiVersion, kind, response: { uid, allowed: true, warnings: ['validated in ' + cluster] } })
    } else if (path === group) {
      const resources = [{ name: 'whos', singularName: 'who', namespaced: false, kind: 'Who', verbs: ['get', 'list'] }]
      json(response, { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: '${whoGroup}/v1', resources })
    } else if (path === group + '/whos/me') json(response, { kind: 'Who', apiVersion: '${whoGroup}/v1', metadata: { name: 'me' }, cluster })
    else if (path === '/') response.end('page of ' + cluster + ' on ' + require('os').hostname())
    else { response.statusCode = 404; response.end() }
  })
}
require('http').createServer(serve).listen(${plainPort})
require('https').createServer({ cert, key }, serve).listen(${port})
process.on('SIGTERM', () => process.exit(0))
`

const shared = ['/usr', '/lib', '/lib64']

/** The pod `who-<index>` on a node, for the Service `who`. */
export function whoPod(cluster: string, index: number, nodeName: string, { cert, key }: { readonly cert: string; readonly key: string }) {
  const container = {
    name: 'app',
    image: 'web-app:1.0',
    command: [process.execPath, '-e', program],
    env: Object.entries({ CLUSTER: cluster, CERT: cert, KEY: key }).map(([name, value]) => ({ name, value })),
    ports: [{ containerPort: plainPort }],
    volumeMounts: shared.map((mountPath, i) => ({ name: `host-${i}`, mountPath, readOnly: true })),
    readinessProbe: { tcpSocket: { port }, periodSeconds: 1 },
  }
  const volumes = shared.map((path, i) => ({ name: `host-${i}`, hostPath: { path } }))
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `who-${index}`, labels: { app: 'who' } },
    spec: { nodeName, terminationGracePeriodSeconds: 0, containers: [container], volumes },
  }
}

/** The Service, and what makes the API server call it. @param ca PEM of who signed the pods' certificate */
export function whoObjects(ca: string) {
  const name = 'who'
  const caBundle = Buffer.from(ca).toString('base64')
  const ports = [
    { name: 'http', port: 80, targetPort: plainPort },
    { name: 'https', port: 443, targetPort: port },
  ]
  const rules = [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }]
  const service = { namespace: 'default', name, path: '/validate' }
  const matchConditions = [{ name: 'asked', expression: 'object.metadata.name.startsWith("asked")' }]
  const webhook = {
    name: `${name}.example.test`,
    clientConfig: { service, caBundle },
    rules,
    matchConditions,
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
  }
  return [
    { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { selector: { app: 'who' }, ports } },
    { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration', metadata: { name }, webhooks: [webhook] },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: `v1.${whoGroup}` },
      spec: { group: whoGroup, version: 'v1', groupPriorityMinimum: 100, versionPriority: 100, caBundle, service: { namespace: 'default', name, port: 443 } },
    },
  ]
}

/** The names that the pods' certificate must carry. */
export const whoHosts = ['who.default.svc']
