/** The metrics that every component begins with (L5): upstream's stabilities, what the process and its runtime use, and what it was built from. */
import type { Exposition } from '#base/exposition'
import type { MetricFamily } from '#base/metricFamily'
import { buildInfo, gitVersion, goPlatform, kubernetesMajor, kubernetesMinor } from '#base/version'
import { addProcessMetrics } from './processMetrics.ts'
import { createPrometheusMetrics, type PrometheusMetrics } from './prometheus.ts'
import { addRuntimeMetrics } from './runtimeMetrics.ts'

export function createComponentMetrics(): PrometheusMetrics {
  const metrics = createPrometheusMetrics()
  addProcessMetrics(metrics)
  addRuntimeMetrics(metrics)
  const { labels, ...info } = buildLabels()
  metrics.gauge({ ...info, labels: Object.keys(labels) }).set(1, labels)
  return metrics
}

/** The families of a scrape. The list of stabilities is loaded with the first one. */
export async function componentFamilies(metrics: PrometheusMetrics): Promise<readonly MetricFamily[]> {
  if (!metrics.isDescribed) metrics.describe((await import('./documentedMetrics.ts')).documentedMetrics)
  return metrics.families()
}

/** A scrape in the format that the Accept header asks for. The formats are loaded with the first one. */
export async function scrapeComponent(metrics: PrometheusMetrics, accept: string | readonly string[] | undefined): Promise<Exposition> {
  const { exposition } = await import('#base/exposition')
  return exposition(await componentFamilies(metrics), accept)
}

/** Upstream: component-base/metrics/version.go. */
function buildLabels() {
  const labels = {
    major: kubernetesMajor,
    minor: kubernetesMinor,
    git_version: gitVersion,
    git_commit: buildInfo.gitCommit,
    git_tree_state: buildInfo.gitTreeState,
    build_date: buildInfo.buildDate,
    // The runtime, where upstream names Go.
    go_version: `node${process.versions.node}`,
    compiler: 'v8',
    platform: goPlatform(process.platform, process.arch),
  }
  return { name: 'kubernetes_build_info', help: 'The version of Kubernetes, and what built and runs this program.', labels }
}
