// Configurations of custom calls that are no text: a NUL, bytes that are not UTF-8, and what looks
// like an escape.
module @bytes {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @opaque(%arg0) {api_version = 2 : i32, backend_config = "\00\01\7F\80\FF\\00end"} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.custom_call @opaque(%0) {api_version = 1 : i32, backend_config = "\00"} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = stablehlo.custom_call @typed(%1) {api_version = 4 : i32, backend_config = {kernel = "\00\80\FF{\22", list = ["\FE", "text"], nested = {more = "\00"}}} : (tensor<4xf32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
