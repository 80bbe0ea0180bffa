/** The objects that load is made of. */

const kibibyte = 'x'.repeat(1024)

/** A ConfigMap with one KiB of data, of which the last digits may differ. */
export function configMap(namespace: string, name: string, options: { resourceVersion?: string | undefined; seed?: number } = {}): Buffer {
  const data = options.seed === undefined ? kibibyte : kibibyte.slice(8) + String(10_000_000 + options.seed)
  const metadata = { name, namespace, ...(options.resourceVersion ? { resourceVersion: options.resourceVersion } : {}) }
  return Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { k: data } }))
}

/** A Secret with one KiB of data. */
export function secret(namespace: string, name: string): Buffer {
  return Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, stringData: { k: kibibyte } }))
}

/** A pod as users write them. With `schedulerName: 'nobody'` it stays pending and costs nothing after its creation. */
export function pod(namespace: string, name: string, spec: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { app: 'bench', tier: 'backend' } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'c',
          image: 'registry.k8s.io/pause:3.9',
          resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { cpu: '200m', memory: '256Mi' } },
          env: [
            { name: 'APP', value: 'bench' },
            { name: 'LEVEL', value: 'info' },
          ],
          ports: [{ containerPort: 8080, name: 'http', protocol: 'TCP' }],
        },
      ],
      ...spec,
    },
  }
}

export function encoded(object: object): Buffer {
  return Buffer.from(JSON.stringify(object))
}
