/** `skiff why -f FILE`: the nodes where a pod that does not exist would run (L4). A dry-run create completes the pod; the scheduler evaluates the result. */
import type { SchedulingExplanation } from '#api/debug/scheduling'
import type { Container, Pod, PodTemplateSpec } from '#api/gen/types/core.v1'
import type { KubeObject } from '#api/machinery/meta'
import { parseYaml } from '#api/machinery/yaml'
import { messageOf } from '#base/messageOf'
import { CommandError } from '../exitCodes.ts'
import { type Ask, askFor } from './questions.ts'

/** What fits into a request's first line. */
const maxBytes = 12_000

export async function explainManifest(ask: Ask, text: string, file: string, namespace: string | undefined): Promise<SchedulingExplanation> {
  const pod = podIn(text, file)
  const where = namespace ?? pod.metadata.namespace ?? 'default'
  const body = { ...pod, metadata: { ...pod.metadata, namespace: where } }
  const made = await askFor<Pod>(ask, `/api/v1/namespaces/${encodeURIComponent(where)}/pods?dryRun=All`, body)
  const asked = JSON.stringify(schedulingPart(made))
  if (Buffer.byteLength(asked) > maxBytes)
    throw new CommandError('usage', `${file}: what the pod asks of nodes is too long to be asked about: more than ${maxBytes} bytes`)
  return askFor<SchedulingExplanation>(ask, `/debug/scheduling?spec=${encodeURIComponent(asked)}`)
}

/** A pod, or what makes pods of a template. */
function podIn(text: string, file: string): Pod {
  let found: KubeObject | null
  try {
    found = parseYaml(text) as KubeObject | null
  } catch (error) {
    throw new CommandError('usage', `${file}: ${messageOf(error)}`)
  }
  if (found?.kind === 'Pod') return found as Pod
  const spec = (found as { spec?: { template?: PodTemplateSpec; jobTemplate?: { spec?: { template?: PodTemplateSpec } } } } | null)?.spec
  const template = spec?.template ?? spec?.jobTemplate?.spec?.template
  if (!found || !template?.spec) throw new CommandError('usage', `${file}: expected one Pod, or one object with a pod template`)
  const { name = 'pod', namespace } = found.metadata ?? {}
  const metadata = { ...template.metadata, generateName: `${name}-`, ...(namespace === undefined ? {} : { namespace }) }
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: template.spec } as Pod
}

/** Without what containers do once they run. */
function schedulingPart({ metadata, spec }: Pod): object {
  const part = ({ name, image, ports, resources, restartPolicy }: Container) => ({ name, image, ports, resources, restartPolicy })
  const { name = `${metadata.generateName}x`, namespace, labels } = metadata
  return {
    metadata: { name, namespace, labels },
    spec: { ...spec, containers: spec.containers.map(part), ...(spec.initContainers ? { initContainers: spec.initContainers.map(part) } : {}) },
  }
}
