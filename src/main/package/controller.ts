/**
 * What the package publishes as skiff-kubernetes/controller (L5): controllers of one's own, over skiff-kubernetes/client. docs/client.md shows a whole one.
 */
export {
  type ControllerDefinition,
  controllerReference,
  type DefinedController,
  defineController,
  generationChanged,
  type Predicate,
  type ReconcileRequest,
  type Watch,
  watching,
} from '#controllers/framework/defineController'
export { type Result, StaleCacheError } from '#controllers/framework/reconciler'
export { type RunControllersDeps, type RunControllersOptions, runControllers } from '#controllers/framework/runControllers'
