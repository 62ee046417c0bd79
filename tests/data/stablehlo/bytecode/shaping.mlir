module @shaping attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%a: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>, jax.buffer_donor = true}, %b: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}], replicated={"y"}>}, %i: tensor<i32>) -> (tensor<4x6xf32> {jax.result_info = "result[0]", sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}p1, {?}]>}, tensor<6x4xf32>, tensor<8x6xf32>, tensor<2x3xf32>, tensor<1x6xf32>, tensor<6x9xf32>, tensor<4x6xi1>, tensor<4x6xbf16>, tensor<3x6xi32>, tensor<2x4x6xf32>, tensor<4x6xf32>, tensor<5xi1>, tensor<2x2xi8>, tensor<4x6xf8E4M3FN>, tensor<2xcomplex<f32>>) {
    %one = stablehlo.constant dense<1.0> : tensor<4x6xf32>
    %same = stablehlo.multiply %a, %one : tensor<4x6xf32>
    %s = stablehlo.add %same, %b : tensor<4x6xf32>
    %s2 = stablehlo.add %same, %b : tensor<4x6xf32>
    %m = stablehlo.maximum %s, %s2 : tensor<4x6xf32>
    %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %c = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %sl = stablehlo.slice %a [0:4:2, 1:4] : (tensor<4x6xf32>) -> tensor<2x3xf32>
    %ds = stablehlo.dynamic_slice %b, %i, %i, sizes = [1, 6] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<1x6xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %p = stablehlo.pad %a, %zero, low = [1, -1], high = [1, 4], interior = [0, 0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<6x9xf32>
    %lt = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
    %cv = stablehlo.convert %a : (tensor<4x6xf32>) -> tensor<4x6xbf16>
    %io = stablehlo.iota dim = 1 : tensor<3x6xi32>
    %bc = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<4x6xf32>) -> tensor<2x4x6xf32>
    %row = stablehlo.slice %a [0:1, 0:6] : (tensor<4x6xf32>) -> tensor<1x6xf32>
    %grow = stablehlo.broadcast_in_dim %row, dims = [0, 1] : (tensor<1x6xf32>) -> tensor<4x6xf32>
    %rev = stablehlo.reverse %grow, dims = [0, 1] : tensor<4x6xf32>
    %bits = stablehlo.constant dense<[true, false, true, true, false]> : tensor<5xi1>
    %small = stablehlo.constant dense<[[1, -2], [3, 127]]> : tensor<2x2xi8>
    %f8 = stablehlo.convert %a : (tensor<4x6xf32>) -> tensor<4x6xf8E4M3FN>
    %z = stablehlo.constant dense<[(1.0, -2.0), (0.5, 4.0)]> : tensor<2xcomplex<f32>>
    return %m, %t, %c, %sl, %ds, %p, %lt, %cv, %io, %bc, %rev, %bits, %small, %f8, %z : tensor<4x6xf32>, tensor<6x4xf32>, tensor<8x6xf32>, tensor<2x3xf32>, tensor<1x6xf32>, tensor<6x9xf32>, tensor<4x6xi1>, tensor<4x6xbf16>, tensor<3x6xi32>, tensor<2x4x6xf32>, tensor<4x6xf32>, tensor<5xi1>, tensor<2x2xi8>, tensor<4x6xf8E4M3FN>, tensor<2xcomplex<f32>>
  }
}
