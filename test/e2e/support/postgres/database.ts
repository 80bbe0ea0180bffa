/**
 * PostgreSQL as the StatefulSet of the reference documents (tests only): an image of Debian's packages, a volume of the host path CSI driver for each replica, and a port
 * of every node for each. The replicas are databases of their own.
 */
import { postgresImage, postgresUser as user, volume } from './postgresImage.ts'

export const image = 'docker.io/library/postgres:debian'
const dataDirectory = `${volume}/pgdata`

const settings = [
  "listen_addresses='*'",
  'unix_socket_directories=/tmp',
  'shared_buffers=16MB',
  'min_wal_size=32MB',
  'max_wal_size=64MB',
  // Between two commits, nothing but a checkpoint writes.
  ...['autovacuum=off', 'wal_level=minimal', 'max_wal_senders=0', 'jit=off'],
]

/** A database that was made halfway when its container ended is made again. */
const script = (programsAt: string) => `set -e
if [ ! -e ${dataDirectory} ]; then
  rm -rf ${dataDirectory}.new
  ${programsAt}/initdb --pgdata=${dataDirectory}.new --username=postgres --auth=trust --locale=C --encoding=UTF8 --no-instructions
  echo 'host all all all trust' >>${dataDirectory}.new/pg_hba.conf
  mv ${dataDirectory}.new ${dataDirectory}
fi
chmod 0700 ${dataDirectory}
exec ${programsAt}/postgres -D ${dataDirectory} ${settings.map((setting) => `-c ${setting}`).join(' ')}`

/** The tar of the image. @throws PackagesMissing */
export function databaseImage(): Promise<string> {
  return postgresImage(image, (programsAt) => ['/bin/sh', '-c', script(programsAt)])
}

interface SetOptions {
  readonly replicas: number
  readonly storage: string
  /** The VolumeSnapshot from which each volume is made. */
  readonly snapshot?: string
}

/** A StatefulSet, its headless Service, and a Service with a port of every node for each replica. */
export function databaseObjects(name: string, { replicas, storage, snapshot }: SetOptions): object[] {
  const labels = { app: name }
  const container = {
    ...{ name: 'db', image, imagePullPolicy: 'IfNotPresent', ports: [{ containerPort: 5432 }] },
    readinessProbe: { tcpSocket: { port: 5432 }, periodSeconds: 1 },
    volumeMounts: [{ name: 'data', mountPath: volume }],
  }
  const spec = {
    securityContext: { runAsUser: user, runAsGroup: user, fsGroup: user, fsGroupChangePolicy: 'OnRootMismatch' },
    terminationGracePeriodSeconds: 3,
    topologySpreadConstraints: [
      { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule', labelSelector: { matchLabels: labels } },
    ],
    containers: [container],
  }
  const claim = {
    ...{ storageClassName: 'csi-hostpath', accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
    ...(snapshot ? { dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: snapshot } } : {}),
  }
  const service = (of: string, more: object) => ({ apiVersion: 'v1', kind: 'Service', metadata: { name: of }, spec: { ports: [{ port: 5432 }], ...more } })
  const pods = Array.from({ length: replicas }, (_, index) => `${name}-${index}`)
  return [
    service(name, { clusterIP: 'None', selector: labels }),
    ...pods.map((pod) => service(pod, { type: 'NodePort', selector: { 'statefulset.kubernetes.io/pod-name': pod } })),
    {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name },
      spec: {
        ...{ replicas, serviceName: name, podManagementPolicy: 'Parallel', selector: { matchLabels: labels } },
        template: { metadata: { labels }, spec },
        volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim }],
      },
    },
  ]
}
