/** The instances of the Cluster `main`, and SQL in them. */
import { kubectl, list, read, until } from '../support/kubectl.ts'
import type { Cluster, Pod } from './objects.ts'

export const name = 'main'
const ofCluster = `cnpg.io/cluster=${name}`
const container = ['-c', 'postgres'] as const
/** The operator starts one instance after the other, each with a Job before it. */
const healthyWithinMs = 420_000

export const readCluster = () => read<Cluster>('cluster', name)
export const namesOf = async (kind: string) => (await list(kind, '-l', ofCluster)).map(({ metadata }) => metadata.name).sort()
export const instances = () => list<Pod>('pods', '-l', `${ofCluster},cnpg.io/podRole=instance`)

/** What the database answers to its superuser, who needs no password on the instance itself. */
export function query(instance: string, sql: string): Promise<string> {
  return psql(instance, ['-U', 'postgres', '-d', 'app'], sql)
}

/** What the primary answers to a client in the pod of any instance: with the user, the password and the Service that the Secret names. */
export async function queryThroughService(from: string, sql: string): Promise<string> {
  const { data } = await read<{ data: { uri: string } }>('secret', `${name}-app`)
  return psql(from, [Buffer.from(data.uri, 'base64').toString()], sql)
}

async function psql(instance: string, connection: readonly string[], sql: string): Promise<string> {
  return (await kubectl(['exec', instance, ...container, '--', 'psql', '-X', '-qtA', '-v', 'ON_ERROR_STOP=1', ...connection, '-c', sql])).trim()
}

export async function isHealthy(primary: string, count: number): Promise<void> {
  await until(
    `the Cluster is healthy, its primary is ${primary}`,
    readCluster,
    ({ status }) => status?.phase === 'Cluster in healthy state' && status.currentPrimary === primary && status.readyInstances === count,
    healthyWithinMs,
  )
}

/** A replica has the name of its pod in the statistics of the primary. */
export async function isStreaming(primary: string, replicas: readonly string[]): Promise<void> {
  await until(
    `${replicas} follow ${primary}`,
    () => query(primary, "select application_name from pg_stat_replication where state = 'streaming' order by 1"),
    (text) => text === replicas.join('\n'),
  )
}
