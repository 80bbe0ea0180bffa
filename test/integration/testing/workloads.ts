/** Workloads for tests of the test cluster. */
import type { PodSpec } from '#api/gen/types/core.v1'
import { cronJobs, daemonSets, deployments, jobs, statefulSets } from '#client/builtIn'
import type { Client } from '#client/client'

export const podSpec = (fields: Partial<PodSpec> = {}): PodSpec => ({ containers: [{ name: 'main', image: 'example.com/app:1' }], ...fields })

const labelled = (app: string) => ({ selector: { matchLabels: { app } }, template: { metadata: { labels: { app } }, spec: podSpec() } })
const namespace = 'default'

export async function addDeployment(client: Client, name: string, replicas: number): Promise<void> {
  await client.of(deployments).create({ metadata: { namespace, name }, spec: { replicas, ...labelled(name) } })
}

export async function addCronJob(client: Client, name: string, schedule: string): Promise<void> {
  const template = { spec: podSpec({ restartPolicy: 'Never' }) }
  await client.of(cronJobs).create({ metadata: { namespace, name }, spec: { schedule, jobTemplate: { spec: { template } } } })
}

/** One of each kind that makes pods. */
export async function addMixedWorkload(client: Client): Promise<void> {
  await addDeployment(client, 'web', 3)
  await addCronJob(client, 'tick', '*/2 * * * *')
  await client.of(daemonSets).create({ metadata: { namespace, name: 'agent' }, spec: labelled('agent') })
  await client.of(statefulSets).create({ metadata: { namespace, name: 'db' }, spec: { replicas: 2, serviceName: 'db', ...labelled('db') } })
  const template = { spec: podSpec({ restartPolicy: 'OnFailure' }) }
  await client.of(jobs).create({ metadata: { namespace, name: 'batch' }, spec: { completions: 4, parallelism: 2, template } })
}
