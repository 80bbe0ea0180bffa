/**
 * Starts sandboxes and containers (L3): everything between the decision to start one and its process.
 * Upstream: kuberuntime_sandbox.go createPodSandbox, kuberuntime_container.go startContainer (v1.36).
 */
import { messageOf } from '#base/messageOf'
import { ownTurn } from '#base/ownTurn'
import type { PodSandboxConfig } from '#grpc/criTypes'
import { rpcErrorText } from '#grpc/grpcError'
import { makeDirectory } from '#host/files'
import { type FrozenContainer, type FrozenPod, formatPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { podLogDirectory } from '../core/podDirectory.ts'
import { podReference } from '../core/podReference.ts'
import { containerRecord, findContainer, type PodRuntimeStatus } from '../core/podRuntimeStatus.ts'
import { handlerName } from '../core/runtimeHandlers.ts'
import { StartError } from '../core/startError.ts'
import type { ImageManager, PulledImage } from '../images/imageManager.ts'
import { linkContainerLog } from '../logs/logLinks.ts'
import { containerResourceOptions } from '../resources/resourceOptions.ts'
import { type ImageVolumes, pullImageVolumes } from '../volumes/imageVolumes.ts'
import type { MountedVolumes } from '../volumes/volumePlugin.ts'
import { makeEnvironment } from './environment.ts'
import { killContainer } from './killing.ts'
import { runLifecycleHandler } from './lifecycle.ts'
import { containerDevices, containerMounts } from './mounts.ts'
import { podResolver } from './resolver.ts'
import { containerConfig, podSandboxConfig } from './runtimeConfig.ts'
import { verifyRunAsNonRoot } from './securityContext.ts'
import { volumeFile } from './volumeFile.ts'

export interface StartRequest {
  readonly pod: FrozenPod
  readonly container: FrozenContainer
  readonly sandboxId: string
  readonly sandbox: PodSandboxConfig
  readonly podIPs: readonly string[]
  readonly status: PodRuntimeStatus
  readonly volumes: MountedVolumes
  /** Set for ephemeral containers that look into another's processes. */
  readonly targetContainerName?: string | undefined
  readonly signal: AbortSignal
  /** The restart count of a container that the runtime has forgotten on purpose. */
  readonly resetCount?: number | undefined
  /** Remembers what the container is about to run with. */
  readonly actuate: () => Promise<void>
}

export interface StartedSandbox {
  readonly id: string
  readonly config: PodSandboxConfig
}

/** Creates the sandbox. @throws StartError */
export async function startSandbox(context: KubeletContext, pod: FrozenPod, attempt: number, signal: AbortSignal): Promise<StartedSandbox> {
  try {
    const handler = await handlerName(context, pod)
    await context.userNamespaces.prepare(pod, handler)
    const config = podSandboxConfig(pod, attempt, context.userNamespaces.of(pod), context.config)
    // A simulated pod resolves no names.
    if (context.host) {
      for (const { reason, message } of podResolver(pod, context.config).warnings) context.recorder.event(podReference(pod), 'Warning', reason, message)
      await makeDirectory(context.host.path(podLogDirectory(context.config, pod)), 0o755)
    }
    return { id: await context.runtime.runPodSandbox(config, handler, { signal }), config }
  } catch (error) {
    const what = rpcErrorText(error)
    if (!signal.aborted) context.recorder.event(podReference(pod), 'Warning', 'FailedCreatePodSandBox', `Failed to create pod sandbox: ${what}`)
    throw new StartError('CreatePodSandboxError', `Failed to create sandbox for pod "${formatPod(pod)}": ${what}`)
  }
}

/** Pulls, configures, creates and starts one container and runs its postStart hook. @throws StartError */
export async function startContainer(context: KubeletContext, images: ImageManager, request: StartRequest): Promise<void> {
  const { pod, container, signal } = request
  const reference = podReference(pod, container.name)
  let id = ''
  const fail = (reason: string, eventReason: string, error: unknown): StartError => {
    // Ids would make every event another one.
    const text = id === '' ? messageOf(error) : messageOf(error).replaceAll(id, container.name)
    if (!signal.aborted) context.recorder.event(reference, 'Warning', eventReason, `Error: ${text}`)
    return new StartError(reason, messageOf(error))
  }
  const { imageRef, image } = await images.ensureImage(pod, container, request.sandbox, signal).catch((error: unknown) => {
    if (error instanceof StartError && !signal.aborted) context.recorder.event(reference, 'Warning', 'Failed', `Error: ${error.reason}`)
    throw error
  })
  const imageVolumes = await pullImageVolumes(context, images, request).catch((error: unknown) => {
    if (error instanceof StartError && !signal.aborted) context.recorder.event(reference, 'Warning', 'Failed', `Error: ${error.reason}`)
    throw error
  })
  const previous = findContainer(request.status, container.name)
  const restartCount = request.resetCount ?? (previous ? previous.restartCount + 1 : restartCountFromStatus(pod, container.name))
  let config: ReturnType<typeof containerConfig>
  try {
    config = await configure(context, request, { restartCount, imageRef, image, imageVolumes })
    await request.actuate()
  } catch (error) {
    if (error instanceof StartError) throw fail(error.reason, 'Failed', error)
    throw fail('CreateContainerConfigError', 'Failed', error)
  }
  try {
    if (context.host) await makeDirectory(context.host.path(`${request.sandbox.logDirectory}/${container.name}`), 0o755)
    id = await context.runtime.createContainer(request.sandboxId, config, request.sandbox, { signal })
  } catch (error) {
    throw fail('CreateContainerError', 'Failed', error)
  }
  context.recorder.event(reference, 'Normal', 'Created', 'Container created')
  try {
    await context.runtime.startContainer(id, { signal })
  } catch (error) {
    throw fail('RunContainerError', 'Failed', error)
  }
  context.recorder.event(reference, 'Normal', 'Started', 'Container started')
  await linkContainerLog(context, pod, container.name, id, `${request.sandbox.logDirectory}/${config.logPath}`)
  await postStart(context, request, id)
}

/** A pod without containers in the runtime continues the restart count of its status. */
function restartCountFromStatus(pod: FrozenPod, name: string): number {
  const statuses = [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? [])]
  const status = statuses.find((candidate) => candidate.name === name)
  return status?.containerID ? status.restartCount + 1 : (status?.restartCount ?? 0)
}

async function configure(
  context: KubeletContext,
  request: StartRequest,
  parts: PulledImage & { readonly restartCount: number; readonly imageVolumes: ImageVolumes },
) {
  const { pod, container, podIPs, volumes } = request
  const { restartCount, imageRef, image, imageVolumes } = parts
  verifyRunAsNonRoot(pod, container, image)
  const facts = { podIPs, hostIPs: context.config.nodeIPs, allocatable: context.allocatable }
  const environment = await makeEnvironment(pod, container, facts, {
    configMap: context.objects.configMap,
    secret: context.objects.secret,
    services: context.services,
    file: (volumeName, path) => volumeFile(context, volumes, volumeName, path),
    ownTurn: () => ownTurn(context.clock),
  })
  const mounts = context.host ? await containerMounts(context, context.host, { pod, container, podIPs, environment, volumes, imageVolumes }) : []
  const target = request.targetContainerName ? findContainer(request.status, request.targetContainerName) : undefined
  if (request.targetContainerName && !target) throw new Error(`unable to find target container ${request.targetContainerName}`)
  const given = await context.resources.containerOptions(pod, container)
  const options = { ...given, devices: [...given.devices, ...containerDevices({ container, volumes })] }
  const extraGroups = [...volumes.values()].flatMap(({ group }) => (group === undefined ? [] : [group]))
  const users = context.userNamespaces.of(pod)
  const inputs = {
    restartCount,
    users,
    extraGroups,
    environment,
    mounts,
    options,
    image,
    imageRef,
    limits: containerResourceOptions(context),
    targetId: target?.id,
  }
  return containerConfig(pod, container, inputs, context.config)
}

/** A container whose postStart hook fails is killed again. */
async function postStart(context: KubeletContext, request: StartRequest, id: string): Promise<void> {
  const { pod, container, signal } = request
  const hook = container.lifecycle?.postStart
  if (!hook) return
  const podIP = request.podIPs[0] ?? context.config.nodeIPs[0] ?? ''
  try {
    await runLifecycleHandler(context, { pod, container, containerId: id, podIP, handler: hook, signal })
  } catch (error) {
    if (signal.aborted) throw error
    context.recorder.event(podReference(pod, container.name), 'Warning', 'FailedPostStartHook', 'PostStartHook failed')
    const status = await context.runtime.containerStatus(id)
    if (status) {
      await killContainer(context, pod, containerRecord(status, request.sandboxId), podIP, {
        reason: 'FailedPostStartHook',
        message: 'FailedPostStartHook',
      })
    }
    throw new StartError('PostStartHookError', `${messageOf(error)}`)
  }
}
