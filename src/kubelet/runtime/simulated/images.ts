/** The images of a simulated runtime (L3): an image exists after it was pulled, and a pull takes time or fails as the pod's annotations define. */
import { GrpcError } from '#grpc/grpcError'
import type { CallContext, Images } from '../../core/runtimeService.ts'
import { pullBehaviourOf } from './profile.ts'
import { newId, type State } from './state.ts'

/** Not root, so that pods with runAsNonRoot start. */
export const usualUser = 65_532

export function addImage(state: State, image: string, id: string, user: number): void {
  const size = state.profile.imageSizeBytes
  state.images.set(image, { id, repoTags: [image], repoDigests: [], size, uid: { value: user }, username: '', pinned: false })
}

/** The calls of CRI about images. */
export function imageCalls(state: State): Images {
  return {
    listImages: async () => [...state.images.values()],
    imageStatus: async (image) => state.images.get(image),
    pullImage: async (image, _auth, sandbox, context?: CallContext) => {
      const { delayMs = state.profile.pullDelayMs, error, failures, user = usualUser } = pullBehaviourOf(state.profile, image, sandbox, state.random)
      await state.clock.sleep(delayMs, context?.signal)
      const key = `${sandbox.metadata.uid} ${image}`
      const failed = state.failedPulls.get(key) ?? 0
      if ((error !== undefined || failures !== undefined) && failed < (failures ?? Number.POSITIVE_INFINITY)) {
        state.failedPulls.set(key, failed + 1)
        throw new GrpcError('NOT_FOUND', error ?? `${image}: a failure on purpose`)
      }
      addImage(state, image, `sha256:${newId(state.random)}`, user)
      return image
    },
    removeImage: async (image) => {
      for (const [name, entry] of state.images) if (name === image || entry.id === image) state.images.delete(name)
    },
    imageFilesystem: async () => undefined,
  }
}
