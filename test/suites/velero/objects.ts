/** A shop with a volume, in a namespace of its own. */
export const namespace = 'shop'
export const image = 'docker.io/library/busybox:1'
export const file = '/data/orders'

const labels = { app: 'shop' }

export const shop: readonly object[] = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace }, data: { currency: 'EUR' } },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace },
    spec: { storageClassName: 'csi-hostpath', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '16Mi' } } },
  },
  { apiVersion: 'v1', kind: 'Service', metadata: { name: 'shop', namespace }, spec: { selector: labels, ports: [{ port: 80 }] } },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'shop', namespace },
    spec: {
      replicas: 1,
      strategy: { type: 'Recreate' },
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          containers: [
            {
              name: 'main',
              image,
              command: ['sh', '-c', 'trap "exit 0" TERM; sleep 100000 & wait'],
              volumeMounts: [{ name: 'data', mountPath: '/data' }],
            },
          ],
          volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
        },
      },
    },
  },
]
