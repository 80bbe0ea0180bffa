/** What the cluster of the pictures has: workloads that run, and one of each kind of trouble. */
const meta = (name, more = {}) => ({ name, namespace: 'default', ...more })
const container = (image, more = {}) => ({ name: 'main', image: `example.com/${image}`, resources: { requests: { cpu: '500m', memory: '256Mi' } }, ...more })

function deployment(name, replicas, image, { annotations, ...more } = {}) {
  const labels = { app: name }
  const template = { metadata: { labels, annotations }, spec: { containers: [container(image, more)] } }
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: meta(name), spec: { replicas, selector: { matchLabels: labels }, template } }
}

const pod = (name, image, { annotations, spec, ...more } = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: meta(name, { annotations }),
  spec: { containers: [container(image, more)], ...spec },
})
const service = (name) => ({ apiVersion: 'v1', kind: 'Service', metadata: meta(name), spec: { selector: { app: name }, ports: [{ port: 80 }] } })

const log = ['GET /cart 200 3 ms', 'GET /checkout 200 12 ms', 'POST /orders 503 2004 ms: the database does not answer', 'GET /cart 200 2 ms'].join('\n')
const ports = [{ containerPort: 80, name: 'http' }]

export const content = [
  deployment('shop', 4, 'shop:1.4', {
    ports,
    annotations: { 'skiff.dev/simulated-logs': log, 'skiff.dev/simulated-exec': '{"sh": {"stdout": "/app # \\n"}}' },
  }),
  deployment('checkout', 3, 'checkout:2.0', { annotations: { 'skiff.dev/simulated-exit-code': '1', 'skiff.dev/simulated-exit-after-seconds': '1' } }),
  pod('report', 'report:9', { annotations: { 'skiff.dev/simulated-pull-error': 'manifest for example.com/report:9 is unknown' } }),
  pod('training', 'training:1', { resources: { requests: { cpu: '64', memory: '32Gi' } } }),
  pod('db', 'db:15', { spec: { nodeSelector: { disk: 'nvme' } } }),
  service('shop'),
  service('checkout'),
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: meta('prices'), data: { tea: '3.20', coffee: '2.80' } },
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: meta('viewer') },
  {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: meta('shop'),
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'shop' },
      minReplicas: 4,
      maxReplicas: 8,
      metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'AverageValue', averageValue: '250m' } } }],
    },
  },
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'leaving' } },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'ledger', namespace: 'leaving', finalizers: ['example.com/archive'] } },
]

/** One Deployment of so many small pods. */
export const crowd = (pods) => [deployment('crowd', pods, 'crowd:1', { resources: { requests: { cpu: '10m', memory: '8Mi' } } })]
