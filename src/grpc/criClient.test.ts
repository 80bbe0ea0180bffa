import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type handleUnaryCall, loadPackageDefinition, Server, ServerCredentials, type ServiceDefinition } from '@grpc/grpc-js'
import { fromJSON } from '@grpc/proto-loader'
import { connectCri, encodeContainerConfig } from './criClient.ts'
import type { ContainerConfig } from './criTypes.ts'
import { GrpcError } from './grpcError.ts'
import { criProto } from './proto/cri.ts'
import { parseProto } from './protoText.ts'

test('calls carry camelCase both ways; refusals become GrpcError with the code by name', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'cri-'))
  const socket = join(directory, 'cri.sock')
  const loaded = loadPackageDefinition(fromJSON(parseProto(criProto) as never, { longs: Number, enums: String, defaults: true, bytes: Buffer }))
  const service = (loaded as unknown as { runtime: { v1: { RuntimeService: { service: ServiceDefinition } } } }).runtime.v1.RuntimeService.service
  const server = new Server()
  let seen: { config: { envs: { value: Buffer }[] } } | undefined
  const createContainer: handleUnaryCall<NonNullable<typeof seen>, object> = (call, done) => {
    seen = call.request
    done(null, { containerId: 'c1' })
  }
  const startContainer: handleUnaryCall<object, object> = (_, done) => done({ code: 5, details: 'container "x" not found' })
  server.addService(service, { CreateContainer: createContainer, StartContainer: startContainer })
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix://${socket}`, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
  )
  const client = connectCri(socket)
  try {
    const config = encodeContainerConfig({ envs: [{ key: 'A', value: 'ü' }] } as unknown as ContainerConfig)
    assert.deepEqual(await client.call('RuntimeService', 'CreateContainer', { podSandboxId: 's', config }), { containerId: 'c1' })
    assert.equal(seen?.config.envs[0]?.value.toString(), 'ü')
    await assert.rejects(
      client.call('RuntimeService', 'StartContainer', { containerId: 'x' }),
      (error) => error instanceof GrpcError && error.code === 'NOT_FOUND' && /not found/.test(error.message),
    )
  } finally {
    client.close()
    server.forceShutdown()
    await rm(directory, { recursive: true })
  }
})
