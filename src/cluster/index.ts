export { appInvalid } from './app-invalid.ts';
export { APPS_MAX, AppRegistry, type AppVersion, BUNDLE_BYTES_MAX, VERSIONS_KEPT_MAX } from './app-registry.ts';
export { type DecodedBundle, decodeBundle } from './check-bundle.ts';
export { checkAppName, checkManifest, checkTriggerPlacement, type TriggerChecks } from './check-manifest.ts';
export { checkRelease } from './check-release.ts';
export { BUCKETS_MAX, BUNDLE_FILES_MAX, FUNCTIONS_MAX, RETRIES_MAX, TRIGGERS_PER_BUCKET_MAX } from './limits.ts';
export { bytesOf, canonicalJson, versionOf } from './version.ts';
