/** A cluster for the length of a test. */
import { type ClusterOptions, startCluster, type TestCluster } from '#testing/cluster'

export async function withCluster(options: ClusterOptions, use: (cluster: TestCluster) => Promise<void>): Promise<void> {
  const cluster = await startCluster(options)
  try {
    await use(cluster)
  } finally {
    await cluster.close()
  }
}
